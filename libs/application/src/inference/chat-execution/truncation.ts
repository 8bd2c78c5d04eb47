/** Truncates the beginning of a conversation that is too long for a model. */
import type { TokenPricedModel } from '#catalogue';
import { type ChatBody, getRequestedMaxTokens } from '../chat/chat-body.ts';
import { countInputTokens, countMaxChatInputTokens } from '../chat/count-tokens.ts';

/** Share of the available tokens that is used, as other tokenizers may count a quarter more tokens than the gateway. */
const MAX_FILL_SHARE = 0.8;
/** Maximum share of the context that is reserved for the output. */
const MAX_OUTPUT_SHARE = 0.5;

type Messages = ChatBody['messages'];

/**
 * Removes the oldest turns of a conversation that may leave too little of the model's context for the output. A request
 * that fits by the upper bound of its tokens is returned without counting them.
 * @param extraInputTokens maximum tokens that are added to the input later
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
 * Selects the latest turns that fit. A turn is a user message with all messages up to the next user message, so a tool
 * call is not separated from its output. System messages and the last turn are always included.
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
