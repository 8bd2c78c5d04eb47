import {
  type ChatCall,
  ChatUpstreams,
  type Hold,
  type StreamedAnswer,
  UpstreamFailure,
  type WholeAnswer,
} from '#application';
import { Named } from './named.ts';

/** A connection to one upstream, whatever it speaks. */
export interface ChatConnection {
  readonly speaksResponses?: boolean;
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
    const upstream = this.upstreams.get(call.upstream);
    if (call.speaks.includes('chat') && call.language === 'chat') return upstream.complete(call);
    if (upstream.speaksResponses) return upstream.complete(call);
    throw new UpstreamFailure('upstream_unavailable', `The upstream "${call.upstream}" does not speak Responses`);
  }

  close(): Promise<void> {
    return this.upstreams.close();
  }
}
