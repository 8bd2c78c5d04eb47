/** Truncates the beginning of a conversation that is too long for a model. */
import type { TokenPricedModel } from '#catalogue';
import { type ChatBody, getRequestedMaxTokens } from '../chat/chat-body.ts';
import { countInputTokens, countMaxChatInputTokens } from '../chat/count-tokens.ts';

/** The part of the room that is filled: other tokenizers make up to a quarter more tokens of a text than ours. */
const MAX_FILL_SHARE = 0.8;
/** The largest part of the context that is reserved for the output. */
const MAX_OUTPUT_SHARE = 0.5;

type Messages = ChatBody['messages'];

/**
 * The request as it fits the model. What is known to fit without counting is not counted.
 * @param extraInputTokens tokens that are yet to be added to the input
 */
export async function truncateToFit(
  body: ChatBody,
  model: Pick<TokenPricedModel, 'context' | 'maxOutput' | 'imageTokens'>,
  extraInputTokens = 0,
): Promise<ChatBody> {
  const { context, maxOutput } = model;
  const output = Math.min(getRequestedMaxTokens(body) ?? maxOutput, maxOutput, context * MAX_OUTPUT_SHARE);
  const availableTokens = context - output - extraInputTokens;
  if (countMaxChatInputTokens(body, model) <= availableTokens) return body;
  const { messages, ...rest } = body;
  const otherTokens = await countInputTokens({ ...rest, messages: [] } as ChatBody);
  const count = (turn: Messages) => countInputTokens({ messages: turn } as ChatBody);
  return {
    ...body,
    messages: await selectLatestTurns(messages, availableTokens * MAX_FILL_SHARE - otherTokens, count),
  } as ChatBody;
}

/**
 * The newest turns that there is room for: a turn is what a user says and all that follows from it, so that a call of a
 * tool and its output are never separated. System messages are always kept, and so is the last turn.
 */
export async function selectLatestTurns(
  messages: Messages,
  availableTokens: number,
  count: (turn: Messages) => number | Promise<number>,
): Promise<Messages> {
  const isSystem = ({ role }: Messages[number]) => role === 'system' || role === 'developer';
  const turns = groupIntoTurns(messages.filter((message) => !isSystem(message)));
  let remainingTokens = availableTokens - (await count(messages.filter(isSystem)));
  const retained = new Set<Messages[number]>();
  for (const [age, turn] of turns.toReversed().entries()) {
    remainingTokens -= await count(turn);
    if (age > 0 && remainingTokens < 0) break;
    for (const message of turn) retained.add(message);
  }
  return messages.filter((message) => isSystem(message) || retained.has(message));
}

function groupIntoTurns(messages: Messages): readonly Messages[] {
  const turns: Messages[number][][] = [];
  for (const message of messages) {
    const last = turns.at(-1);
    if (message.role === 'user' || !last) turns.push([message]);
    else last.push(message);
  }
  return turns;
}
