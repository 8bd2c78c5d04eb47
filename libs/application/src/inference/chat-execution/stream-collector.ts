/** The events of an answer as the answer in one piece that they come to. */

import type { AnswerIdentity } from '../../providers/provider.ts';
import type { SearchNote } from '../../providers/web-search.ts';
import type { Thing } from '../../wire/json-object.ts';
import { parsedEvent, sseDataIn } from '../../wire/sse.ts';
import { CollectedChat } from '../chat/chat-chunk-collector.ts';
import type { AnswerReceiver } from '../chat/completion-writer.ts';
import { NativeOutput } from '../responses/native-output.ts';

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
