/**
 * Entries of the log, read from the bytes of the server's answers (`ReadResp` in the protocol's streams.proto). Everything that
 * follows the log reads all of it, so this is for speed: the client makes objects of every message and field, also of entries
 * that are not ours, and takes twice as long.
 */
import jspb from 'google-protobuf';
import { type Metadata, START_POSITION, type StoredEvent } from '#kernel';

type Reader = InstanceType<typeof jspb.BinaryReader>;

export interface LogEntry {
  readonly position: bigint;
  /** Undefined where it is not wanted. */
  readonly event: StoredEvent | undefined;
}

/** An event as it is sent, without what nobody asks for. */
interface RawEvent {
  id: string;
  stream: string;
  revision: number;
  position: bigint;
  /** `type`, `content-type` and `created`, in units of 100 ns since 1970. */
  readonly system: Record<string, string>;
  metadata: Uint8Array;
  data: Uint8Array;
}

const NO_BYTES = new Uint8Array();
const TICKS_PER_MS = 10_000n;

/**
 * @param isIncluded of which streams the facts are; others are not parsed
 * @returns an entry before all others where the answer has none
 */
export function parseLogEntry(bytes: Buffer, isIncluded: (stream: string) => boolean): LogEntry {
  const identity = { id: '', stream: '', revision: 0, position: START_POSITION };
  const raw: RawEvent = { ...identity, system: {}, metadata: NO_BYTES, data: NO_BYTES };
  // A view: the reader would copy a Buffer.
  const reader = new jspb.BinaryReader(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  readFields(reader, (field) => field === 1 && reader.readMessage(raw, readEvent));
  const { position } = raw;
  return {
    position,
    event: position !== START_POSITION && isIncluded(raw.stream) ? createStoredEvent(raw) : undefined,
  };
}

/** Reads the fields of a message; those for which `read` returns false are left out. */
function readFields(reader: Reader, read: (field: number) => unknown): void {
  while (reader.nextField() && !reader.isEndGroup()) if (read(reader.getFieldNumber()) === false) reader.skipField();
}

function readEvent(raw: RawEvent, reader: Reader): void {
  readFields(reader, (field) => field === 1 && reader.readMessage(raw, readRecordedEvent));
}

function readRecordedEvent(raw: RawEvent, reader: Reader): void {
  raw.position = 0n; // as any number, it is not sent where it is zero
  readFields(reader, (field) => {
    switch (field) {
      case 1:
        return reader.readMessage(raw, readId);
      case 2:
        return reader.readMessage(raw, readStream);
      case 3:
        raw.revision = reader.readUint64();
        return true;
      case 5:
        raw.position = BigInt(reader.readUint64String());
        return true;
      case 6:
        return reader.readMessage(raw, readSystemMetadata);
      case 7:
        raw.metadata = reader.readBytes();
        return true;
      case 8:
        raw.data = reader.readBytes();
        return true;
      default:
        return false;
    }
  });
}

function readId(raw: RawEvent, reader: Reader): void {
  readFields(reader, (field) => {
    if (field !== 2) return false; // the other form is not asked for
    raw.id = reader.readString();
    return true;
  });
}

function readStream(raw: RawEvent, reader: Reader): void {
  readFields(reader, (field) => {
    if (field !== 3) return false;
    raw.stream = decodeText(reader.readBytes());
    return true;
  });
}

/** One of the server's own properties of an event. */
function readSystemMetadata(raw: RawEvent, reader: Reader): void {
  let [name, value] = ['', ''];
  readFields(reader, (field) => {
    if (field === 1) name = reader.readString();
    else value = reader.readString();
    return true;
  });
  raw.system[name] = value;
}

function createStoredEvent({ id, stream, revision, position, system, metadata, data }: RawEvent): StoredEvent {
  const milliseconds = Number(BigInt(system.created ?? 0) / TICKS_PER_MS);
  return {
    ...{ id, stream, revision, position, recordedAt: new Date(milliseconds).toISOString(), type: system.type ?? '' },
    data: system['content-type'] === 'application/json' ? parseJson(data) : data,
    metadata: metadata.length === 0 ? {} : (parseJson(metadata) as Metadata),
  };
}

function parseJson(bytes: Uint8Array): unknown {
  const text = decodeText(bytes);
  try {
    return JSON.parse(text);
  } catch {
    return text; // for whoever can say what is wrong with it
  }
}

function decodeText({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString();
}
