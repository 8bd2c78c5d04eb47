import { type ChatCall, ChatUpstreams, type Hold, type StreamedAnswer, type WholeAnswer } from '#application';
import { Named } from './named.ts';

/** A connection to one upstream, whatever it speaks. */
export interface ChatConnection {
  complete(call: ChatCall): Promise<WholeAnswer | StreamedAnswer>;
  close(): Promise<void>;
}

/** Chat with the upstreams that are configured. */
export class NamedChatUpstreams extends ChatUpstreams {
  private readonly upstreams: Named<ChatConnection>;

  constructor(upstreams: Readonly<Record<string, ChatConnection>>) {
    super();
    this.upstreams = new Named(upstreams);
  }

  async complete(_hold: Hold, call: ChatCall): Promise<WholeAnswer | StreamedAnswer> {
    return this.upstreams.get(call.upstream).complete(call);
  }

  close(): Promise<void> {
    return this.upstreams.close();
  }
}
