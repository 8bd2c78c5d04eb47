/** The events of an answer as the answer in one piece that they come to. */
import { NativeOutput } from '../responses/native-output.ts';
import type { AnswerReceiver } from '../vocabulary/answers.ts';
import { CollectedChat } from '../vocabulary/collected-chat.ts';
import type { AnswerIdentity } from '../vocabulary/providers.ts';
import { parsedEvent, sseDataIn } from '../vocabulary/sse.ts';
import type { Thing } from '../vocabulary/things.ts';
import type { SearchNote } from '../vocabulary/web-search.ts';

export class Collector implements AnswerReceiver {
  private readonly native: NativeOutput | undefined;
  private readonly chat = new CollectedChat();
  private noted: SearchNote[] = [];

  constructor(
    language: 'chat' | 'responses',
    private readonly identity: AnswerIdentity,
  ) {
    this.native = language === 'responses' ? new NativeOutput(true) : undefined;
  }

  /** @throws UpstreamFailure when an event cannot be read */
  write(events: Uint8Array): undefined {
    const into = this.native ?? this.chat;
    for (const data of sseDataIn(events)) into.accept(parsedEvent(data));
  }

  searched(search: SearchNote): undefined {
    if (search.state !== 'searching') this.noted.push(search);
  }

  get searches(): readonly SearchNote[] {
    return this.noted;
  }

  get body(): Thing {
    const { native, chat, identity } = this;
    if (!native) return { ...chat.body, ...identity };
    const details = native.cutShort === undefined ? {} : { incomplete_details: { reason: native.cutShort } };
    return { object: 'response', output: native.items, ...details };
  }
}
