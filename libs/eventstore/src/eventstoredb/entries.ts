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
  readonly fact: StoredEvent | undefined;
}

/** An event as it is sent, without what nobody asks for. */
interface Sent {
  id: string;
  stream: string;
  revision: number;
  position: bigint;
  /** `type`, `content-type` and `created`, in units of 100 ns since 1970. */
  readonly system: Record<string, string>;
  metadata: Uint8Array;
  data: Uint8Array;
}

const NOTHING = new Uint8Array();
const TICKS_PER_MS = 10_000n;

/**
 * @param isWanted of which streams the facts are; others are not parsed
 * @returns an entry before all others where the answer has none
 */
export function parseLogEntry(answer: Buffer, isWanted: (stream: string) => boolean): LogEntry {
  const named = { id: '', stream: '', revision: 0, position: START_POSITION };
  const sent: Sent = { ...named, system: {}, metadata: NOTHING, data: NOTHING };
  // A view: the reader would copy a Buffer.
  const reader = new jspb.BinaryReader(new Uint8Array(answer.buffer, answer.byteOffset, answer.byteLength));
  readEach(reader, (field) => field === 1 && reader.readMessage(sent, readEvent));
  const { position } = sent;
  return { position, fact: position !== START_POSITION && isWanted(sent.stream) ? factOf(sent) : undefined };
}

/** Reads the fields of a message; those for which `read` returns false are left out. */
function readEach(reader: Reader, read: (field: number) => unknown): void {
  while (reader.nextField() && !reader.isEndGroup()) if (read(reader.getFieldNumber()) === false) reader.skipField();
}

function readEvent(sent: Sent, reader: Reader): void {
  readEach(reader, (field) => field === 1 && reader.readMessage(sent, readRecorded));
}

function readRecorded(sent: Sent, reader: Reader): void {
  sent.position = 0n; // as any number, it is not sent where it is zero
  readEach(reader, (field) => {
    switch (field) {
      case 1:
        return reader.readMessage(sent, readId);
      case 2:
        return reader.readMessage(sent, readStream);
      case 3:
        sent.revision = reader.readUint64();
        return true;
      case 5:
        sent.position = BigInt(reader.readUint64String());
        return true;
      case 6:
        return reader.readMessage(sent, readSystem);
      case 7:
        sent.metadata = reader.readBytes();
        return true;
      case 8:
        sent.data = reader.readBytes();
        return true;
      default:
        return false;
    }
  });
}

function readId(sent: Sent, reader: Reader): void {
  readEach(reader, (field) => {
    if (field !== 2) return false; // the other form is not asked for
    sent.id = reader.readString();
    return true;
  });
}

function readStream(sent: Sent, reader: Reader): void {
  readEach(reader, (field) => {
    if (field !== 3) return false;
    sent.stream = textOf(reader.readBytes());
    return true;
  });
}

/** One of the server's own properties of an event. */
function readSystem(sent: Sent, reader: Reader): void {
  let [name, value] = ['', ''];
  readEach(reader, (field) => {
    if (field === 1) name = reader.readString();
    else value = reader.readString();
    return true;
  });
  sent.system[name] = value;
}

function factOf({ id, stream, revision, position, system, metadata, data }: Sent): StoredEvent {
  const milliseconds = Number(BigInt(system.created ?? 0) / TICKS_PER_MS);
  return {
    ...{ id, stream, revision, position, recordedAt: new Date(milliseconds).toISOString(), type: system.type ?? '' },
    data: system['content-type'] === 'application/json' ? parsed(data) : data,
    metadata: metadata.length === 0 ? {} : (parsed(metadata) as Metadata),
  };
}

function parsed(bytes: Uint8Array): unknown {
  const text = textOf(bytes);
  try {
    return JSON.parse(text);
  } catch {
    return text; // for whoever can say what is wrong with it
  }
}

function textOf({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString();
}
