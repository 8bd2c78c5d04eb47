/** Truncates the beginning of a conversation that is too long for a model. */
import type { TokenPricedModel } from '#catalogue';
import { type ChatBody, getRequestedMaxTokens } from '../chat/chat-body.ts';
import { collectInputText, countMaxChatInputTokens, joinTexts } from '../chat/count-tokens.ts';

/** Share of the available tokens that is used, as other tokenizers may count a quarter more tokens than the gateway. */
const MAX_FILL_SHARE = 0.8;
/** Maximum share of the context that is reserved for the output. */
const MAX_OUTPUT_SHARE = 0.5;

/** Turns whose tokens are counted together. */
const TURNS_PER_COUNT = 64;

type Messages = ChatBody['messages'];

/** Counts the tokens of each text. */
export type CountTexts = (texts: readonly string[]) => Promise<readonly number[]>;

/**
 * Removes the oldest turns of a conversation that may leave too little of the model's context for the output. A request
 * that fits by the upper bound of its tokens is returned without counting them.
 * @param countTexts called only if tokens must be counted
 * @param extraInputTokens maximum tokens that are added to the input later
 */
export async function truncateToFit(
  body: ChatBody,
  model: Pick<TokenPricedModel, 'context' | 'maxOutput' | 'imageTokens'>,
  countTexts: CountTexts,
  extraInputTokens = 0,
): Promise<ChatBody> {
  const { context, maxOutput } = model;
  const output = Math.min(getRequestedMaxTokens(body) ?? maxOutput, maxOutput, context * MAX_OUTPUT_SHARE);
  const availableTokens = context - output - extraInputTokens;
  if (countMaxChatInputTokens(body, model) <= availableTokens) return body;
  const { messages, tools } = body;
  const countEach = async (inputs: readonly Pick<ChatBody, 'messages' | 'tools'>[]) => {
    const collected = inputs.map(collectInputText);
    const counts = await countTexts(collected.map(({ texts }) => joinTexts(texts)));
    return collected.map(({ otherTokens }, i) => otherTokens + (counts[i] ?? 0));
  };
  const [otherTokens = 0] = await countEach([{ messages: [], tools }]);
  const countTurns = (turns: readonly Messages[]) => countEach(turns.map((turn) => ({ messages: turn })));
  return {
    ...body,
    messages: await selectLatestTurns(messages, availableTokens * MAX_FILL_SHARE - otherTokens, countTurns),
  } as ChatBody;
}

/**
 * Selects the latest turns that fit. A turn is a user message with all messages up to the next user message, so a tool
 * call is not separated from its output. System messages and the last turn are always included.
 */
export async function selectLatestTurns(
  messages: Messages,
  availableTokens: number,
  countTurns: (turns: readonly Messages[]) => Promise<readonly number[]>,
): Promise<Messages> {
  const isSystem = ({ role }: Messages[number]) => role === 'system' || role === 'developer';
  const turns = groupIntoTurns(messages.filter((message) => !isSystem(message)));
  const [systemTokens = 0] = await countTurns([messages.filter(isSystem)]);
  let remainingTokens = availableTokens - systemTokens;
  const retained = new Set<Messages[number]>(turns.at(-1));
  const latest = turns.toReversed();
  for (let age = 0; age < latest.length && remainingTokens >= 0; age += TURNS_PER_COUNT) {
    const group = latest.slice(age, age + TURNS_PER_COUNT);
    const counts = await countTurns(group);
    for (const [i, turn] of group.entries()) {
      remainingTokens -= counts[i] ?? 0;
      if (remainingTokens < 0) break;
      for (const message of turn) retained.add(message);
    }
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
