import type { Customer, ProofCluster } from '../../cluster.ts';

const WORKERS = 6;

export interface ChatLoad {
  /** Number of complete responses so far. */
  readonly completed: number;
  stop(): Promise<void>;
}

/** Sends chats, every second one as a stream, with a few at a time until it is stopped. */
export function startChats({ gateways: [api] }: ProofCluster, { apiKey }: Customer): ChatLoad {
  const load = { completed: 0, isOver: false };
  const sendChats = async (_: unknown, worker: number) => {
    while (!load.isOver) {
      if (await sendChat(String(api), apiKey, worker % 2 === 0)) load.completed++;
    }
  };
  const workers = Array.from({ length: WORKERS }, sendChats);
  return {
    get completed() {
      return load.completed;
    },
    async stop() {
      load.isOver = true;
      await Promise.all(workers);
    },
  };
}

/** @returns whether the response was complete */
export async function sendChat(api: string, apiKey: string, stream = false): Promise<boolean> {
  const messages = [{ role: 'user', content: '[[sandbox latency=20 tokens=8]]' }];
  const body = JSON.stringify({ model: 'openai/gpt-5-mini', messages, max_tokens: 16, stream });
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const response = await fetch(`${api}/v1/chat/completions`, { method: 'POST', headers, body });
  const text = await response.text();
  return response.status === 200 && (!stream || text.endsWith('data: [DONE]\n\n'));
}
