/** Truncates the beginning of a conversation that is too long for a model. */
import type { TokenPricedModel } from '#catalogue';
import { type ChatBody, getRequestedMaxTokens } from '../chat/chat-body.ts';
import { countInputTokens, countMaxChatInputTokens } from '../chat/count-tokens.ts';

/** The part of the room that is filled: other tokenizers make up to a quarter more tokens of a text than ours. */
const FILLED = 0.8;
/** The largest part of the context that is reserved for the output. */
const MOST_OUTPUT = 0.5;

type Messages = ChatBody['messages'];

/**
 * The request as it fits the model. What is known to fit without counting is not counted.
 * @param more tokens that are yet to be added to the input
 */
export async function truncateToFit(
  body: ChatBody,
  model: Pick<TokenPricedModel, 'context' | 'maxOutput' | 'imageTokens'>,
  more = 0,
): Promise<ChatBody> {
  const { context, maxOutput } = model;
  const output = Math.min(getRequestedMaxTokens(body) ?? maxOutput, maxOutput, context * MOST_OUTPUT);
  const room = context - output - more;
  if (countMaxChatInputTokens(body, model) <= room) return body;
  const { messages, ...rest } = body;
  const others = await countInputTokens({ ...rest, messages: [] } as ChatBody);
  const count = (turn: Messages) => countInputTokens({ messages: turn } as ChatBody);
  return { ...body, messages: await selectLatestTurns(messages, room * FILLED - others, count) } as ChatBody;
}

/**
 * The newest turns that there is room for: a turn is what a user says and all that follows from it, so that a call of a
 * tool and its output are never separated. System messages are always kept, and so is the last turn.
 */
export async function selectLatestTurns(
  messages: Messages,
  room: number,
  count: (turn: Messages) => number | Promise<number>,
): Promise<Messages> {
  const isSystem = ({ role }: Messages[number]) => role === 'system' || role === 'developer';
  const turns = turnsOf(messages.filter((message) => !isSystem(message)));
  let left = room - (await count(messages.filter(isSystem)));
  const kept = new Set<Messages[number]>();
  for (const [age, turn] of turns.toReversed().entries()) {
    left -= await count(turn);
    if (age > 0 && left < 0) break;
    for (const message of turn) kept.add(message);
  }
  return messages.filter((message) => isSystem(message) || kept.has(message));
}

function turnsOf(messages: Messages): readonly Messages[] {
  const turns: Messages[number][][] = [];
  for (const message of messages) {
    const last = turns.at(-1);
    if (message.role === 'user' || !last) turns.push([message]);
    else last.push(message);
  }
  return turns;
}
