/**
 * Limits what makes JSON slow to parse, while the body arrives and before it is parsed: `JSON.parse` cannot be
 * interrupted. Each chunk takes time in proportion to its bytes.
 */
import { BadRequestError } from '../errors/errors.ts';

/** Maximum nesting of objects and arrays. */
export const MAX_DEPTH = 64;
/**
 * Maximum number of array elements in a body. The longest legitimate array is the input of embeddings: 300,000 tokens
 * as numbers.
 */
export const MAX_ELEMENTS = 500_000;
/** Maximum number of object fields in a body. Each part of a conversation has a few; every distinct name costs time. */
export const MAX_FIELDS = 50_000;
/** Maximum number of fields at the top level of a body. A request copies them several times. */
const MAX_TOP_LEVEL_FIELDS = 1_000;
/** Maximum number of fields in one object: listing the names of a larger one takes tens of milliseconds. */
const MAX_FIELDS_PER_OBJECT = 10_000;
/** Maximum number of objects and arrays in a body. */
const MAX_CONTAINERS = 50_000;
/** Maximum number of strings in a body, names of fields included. */
const MAX_STRINGS = 100_000;
/** Maximum bytes of all numbers, literals and white space together: 300,000 tokens have 2 MB. */
const MAX_PLAIN_BYTES = 4 * 1024 * 1024;
/** Maximum bytes of all names of fields together. Each distinct name is stored in a table. */
const MAX_NAME_BYTES = 2 * 1024 * 1024;

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Scans the bytes of one body. Invalid JSON is counted somehow, and rejected when it is parsed. */
export class JsonScanner {
  private isInString = false;
  private isEscaped = false;
  /** Bytes of the last string, which may be the name of a field. */
  private stringBytes = 0;
  private depth = 0;
  /** By depth: the fields of the object that is open there. */
  private readonly fieldsByDepth = new Uint32Array(MAX_DEPTH + 1);
  private maxFieldsOfObject = 0;
  private commas = 0;
  private strings = 0;
  private fields = 0;
  private containers = 0;
  private nameBytes = 0;
  private plainBytes = 0;

  /** @throws BadRequestError if the body exceeds a limit with this chunk */
  scan(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at++) {
      if (this.isInString) at = this.scanString(bytes, at);
      else this.scanByte(bytes[at] as number);
    }
    this.assertWithinLimits();
  }

  /** Returns the index of the quote that ends the string, or of the last byte. */
  private scanString(bytes: Uint8Array, start: number): number {
    let at = start;
    if (this.isEscaped) {
      this.isEscaped = false;
      at++;
    }
    for (; at < bytes.length; at++) {
      const byte = bytes[at];
      if (byte === QUOTE) {
        this.isInString = false;
        break;
      }
      if (byte === BACKSLASH && ++at === bytes.length) this.isEscaped = true;
    }
    this.stringBytes += at - start;
    return at;
  }

  private scanByte(byte: number): void {
    switch (byte) {
      case QUOTE:
        this.isInString = true;
        this.stringBytes = 0;
        this.strings++;
        break;
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        this.containers++;
        if (++this.depth > MAX_DEPTH)
          throw new BadRequestError(`The body must not be nested deeper than ${MAX_DEPTH} levels`);
        this.fieldsByDepth[this.depth] = 0;
        break;
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        if (this.depth > 0) this.depth--;
        break;
      case COLON:
        this.countField();
        this.nameBytes += this.stringBytes;
        break;
      case COMMA:
        this.commas++;
        break;
      default:
        this.plainBytes++;
    }
  }

  private countField(): void {
    this.fields++;
    const ofObject = (this.fieldsByDepth[this.depth] ?? 0) + 1;
    this.fieldsByDepth[this.depth] = ofObject;
    if (ofObject > this.maxFieldsOfObject) this.maxFieldsOfObject = ofObject;
  }

  private assertWithinLimits(): void {
    if ((this.fieldsByDepth[1] ?? 0) > MAX_TOP_LEVEL_FIELDS)
      throw createTooManyError('fields at the top level', MAX_TOP_LEVEL_FIELDS);
    if (this.maxFieldsOfObject > MAX_FIELDS_PER_OBJECT)
      throw createTooManyError('fields in one object', MAX_FIELDS_PER_OBJECT);
    if (this.fields > MAX_FIELDS) throw createTooManyError('fields', MAX_FIELDS);
    // Commas separate elements, fields and nothing else.
    if (this.commas - this.fields > MAX_ELEMENTS) throw createTooManyError('array elements', MAX_ELEMENTS);
    if (this.containers > MAX_CONTAINERS) throw createTooManyError('objects and arrays', MAX_CONTAINERS);
    if (this.strings > MAX_STRINGS) throw createTooManyError('strings', MAX_STRINGS);
    if (this.nameBytes > MAX_NAME_BYTES) throw createTooManyError('bytes in names of fields', MAX_NAME_BYTES);
    if (this.plainBytes > MAX_PLAIN_BYTES)
      throw createTooManyError('bytes of numbers, literals and white space', MAX_PLAIN_BYTES);
  }
}

export function createTooManyError(what: string, max: number): BadRequestError {
  return new BadRequestError(`The body must have at most ${max} ${what}`);
}
