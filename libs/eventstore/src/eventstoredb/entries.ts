/**
 * Parses entries of the log from the bytes of the server's responses (`ReadResp` in streams.proto of EventStoreDB).
 * This module exists for speed, because subscribers read the complete log. The client takes twice as long: it creates
 * objects for all messages and fields, also for entries that this adapter drops.
 */
import jspb from 'google-protobuf';
import { type Metadata, START_POSITION, type StoredEvent } from '#kernel';

type Reader = InstanceType<typeof jspb.BinaryReader>;

export interface LogEntry {
  readonly position: bigint;
  /** Undefined if the response has no event, or its stream is not included. */
  readonly event: StoredEvent | undefined;
}

/** The fields of an event that are used. */
interface RawEvent {
  id: string;
  stream: string;
  revision: number;
  position: bigint;
  /** `type`, `content-type` and `created` (in units of 100 ns since 1970). */
  readonly system: Record<string, string>;
  metadata: Uint8Array;
  data: Uint8Array;
}

const NO_BYTES = new Uint8Array();
const TICKS_PER_MS = 10_000n;

/**
 * Parses one response of a read.
 * @param isIncluded selects the streams whose events are returned
 * @returns an entry at START_POSITION if the response has no event
 */
export function parseLogEntry(bytes: Buffer, isIncluded: (stream: string) => boolean): LogEntry {
  const raw: RawEvent = {
    id: '',
    stream: '',
    revision: 0,
    position: START_POSITION,
    system: {},
    metadata: NO_BYTES,
    data: NO_BYTES,
  };
  // A Uint8Array on the same memory, because the reader would copy a Buffer.
  const reader = new jspb.BinaryReader(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  readFields(reader, (field) => field === 1 && reader.readMessage(raw, readEvent));
  const { position } = raw;
  return {
    position,
    event: position !== START_POSITION && isIncluded(raw.stream) ? createStoredEvent(raw) : undefined,
  };
}

/** Reads the fields of a message, and skips those for which `read` returns false. */
function readFields(reader: Reader, read: (field: number) => unknown): void {
  while (reader.nextField() && !reader.isEndGroup()) if (read(reader.getFieldNumber()) === false) reader.skipField();
}

function readEvent(raw: RawEvent, reader: Reader): void {
  readFields(reader, (field) => field === 1 && reader.readMessage(raw, readRecordedEvent));
}

function readRecordedEvent(raw: RawEvent, reader: Reader): void {
  raw.position = 0n; // protobuf does not send numbers that are zero
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
    if (field !== 2) return false; // the read requests ids as strings
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

/** Reads one entry of the system metadata map. */
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
    id,
    stream,
    revision,
    position,
    recordedAt: new Date(milliseconds).toISOString(),
    type: system.type ?? '',
    data: system['content-type'] === 'application/json' ? parseJson(data) : data,
    metadata: metadata.length === 0 ? {} : (parseJson(metadata) as Metadata),
  };
}

function parseJson(bytes: Uint8Array): unknown {
  const text = decodeText(bytes);
  try {
    return JSON.parse(text);
  } catch {
    return text; // the reader of the event reports it as invalid
  }
}

function decodeText({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString();
}
