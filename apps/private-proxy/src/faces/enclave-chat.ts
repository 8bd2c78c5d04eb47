/** A chat as an enclave takes it: OpenAI's fields as vLLM knows them, and no marks that only Claude or a router understands. */
import { type ChatBody, isObject, type Thing } from '#application/messages';
import { Failure } from '../failure.ts';

/** vLLM's words for how hard a model is to think, which are fewer. */
const EFFORTS: Readonly<Record<string, string>> = {
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
  max: 'high',
};

/**
 * @param model without the prefix
 * @throws Failure for a search of the web, which an enclave cannot make
 */
export function enclaveChat(chat: ChatBody, model: string): Thing {
  const { messages, tools, reasoning, provider, plugins, ...rest } = chat;
  const effort = isObject(reasoning) ? EFFORTS[String(reasoning.effort)] : undefined;
  return {
    ...rest,
    model,
    messages: messages.map(messageIn),
    ...(tools ? { tools: tools.map(toolIn) } : {}),
    ...(effort ? { reasoning_effort: effort } : {}),
    ...(chat.stream ? { stream_options: { include_usage: true } } : {}),
  };
}

function messageIn({ cache_control, is_error, reasoning_details, content, ...message }: Thing): Thing {
  return { ...message, content: Array.isArray(content) ? contentIn(content, message.role) : content };
}

/** One text where there is nothing else: not every template for chats takes parts of a system prompt, or of a result. */
function contentIn(parts: readonly unknown[], role: unknown): unknown {
  const plain = parts.filter(isObject).map(({ cache_control, ...part }) => part as Thing);
  if (!plain.every(({ type }) => type === 'text')) return plain;
  return plain.map(({ text }) => text).join(role === 'tool' || role === 'assistant' ? '' : '\n');
}

function toolIn(tool: unknown, at: number): Thing {
  const { cache_control, ...plain } = tool as Thing;
  if (plain.type === 'function') return plain;
  throw new Failure(400, 'An enclave cannot search the web', { param: `tools[${at}]` });
}
