import { appendFileSync, existsSync, readFileSync, truncateSync } from 'node:fs';
import type { LogStorage, ProposedEvent, StoredAppend } from './log.ts';

const END_OF_LINE = 10;

/** One line of the file, as JSON: bigints as text, bytes as base64. */
interface Line {
  readonly stream: string;
  readonly created: string;
  readonly events: readonly (Omit<ProposedEvent, 'data' | 'metadata'> & {
    readonly data: string;
    readonly metadata: string;
  })[];
}

/** Stores a log in a file, one line per append. The log survives the end of its process, even by SIGKILL. */
export class Journal implements LogStorage {
  constructor(private readonly file: string) {}

  /**
   * Returns when the operating system has the line. Responses are sent after that, so the end of the process loses no
   * confirmed append.
   */
  add({ stream, created, events }: StoredAppend): void {
    const line: Line = {
      stream,
      created: created.toString(),
      events: events.map((event) => ({ ...event, data: base64(event.data), metadata: base64(event.metadata) })),
    };
    appendFileSync(this.file, `${JSON.stringify(line)}\n`);
  }

  /** Yields the appends in their order. Removes an incomplete last line, because its append got no response. */
  *read(): Generator<StoredAppend> {
    if (!existsSync(this.file)) return;
    const text = readFileSync(this.file);
    let begin = 0;
    for (let end = text.indexOf(END_OF_LINE); end >= 0; end = text.indexOf(END_OF_LINE, begin)) {
      const { stream, created, events } = JSON.parse(text.toString('utf8', begin, end)) as Line;
      begin = end + 1;
      yield {
        stream,
        created: BigInt(created),
        events: events.map((event) => ({ ...event, data: bytes(event.data), metadata: bytes(event.metadata) })),
      };
    }
    if (begin < text.length) truncateSync(this.file, begin);
  }
}

function base64(content: Uint8Array): string {
  return Buffer.from(content.buffer, content.byteOffset, content.length).toString('base64');
}

function bytes(text: string): Uint8Array {
  return Buffer.from(text, 'base64');
}
