/**
 * Blocks of thinking that a request sends back. As Anthropic does, the sandbox drops those that the model cannot read,
 * and rejects those that are bound to a different conversation, as for accounts since 2026-08-31:
 * https://platform.claude.com/docs/en/build-with-claude/preserved-thinking
 */
import { createHash } from 'node:crypto';
import { invalidRequestError } from './errors.ts';
import type { AnthropicModel } from './models.ts';
import { type MessageBlock, type MessageTurn, toBlocks } from './turns.ts';

/** Stands for the signature of a model whose thinking is not bound; it is not a valid one. */
const UNBOUND_SIGNATURE = 'c2FuZGJveA==';
const BINDING_BETA = 'thinking-binding-controls-2026-08-01';

interface Conversation {
  readonly system?: unknown;
  readonly tools?: unknown;
  readonly thinking?: {
    readonly type?: unknown;
    readonly block_binding?: { readonly prefix_mismatch_behavior?: unknown };
  };
}

/** Returns the signature of the thinking in the response to a conversation. */
export function sign(conversation: Conversation, turns: readonly MessageTurn[], model: AnthropicModel): string {
  if (!model.thinkingReaders) return UNBOUND_SIGNATURE;
  const blocks = turns.flatMap(({ role, content }) => toBlocks(content).map((block) => ({ role, block })));
  return Buffer.from(`${model.id} ${hashPrefix(conversation, blocks)}`).toString('base64');
}

/**
 * Returns the turns with the blocks that the model gets.
 * @param findAuthor returns the model with an id
 * @throws HttpError 400 for a block of another conversation, unless the request lets it be dropped
 */
export function selectThinking(
  conversation: Conversation,
  turns: readonly MessageTurn[],
  model: AnthropicModel,
  { betas, findAuthor }: { readonly betas: string; findAuthor(id: string): AnthropicModel | undefined },
): readonly MessageTurn[] {
  const { type, block_binding } = conversation.thinking ?? {};
  if (block_binding && !(betas.includes(BINDING_BETA) && (type === 'adaptive' || type === 'enabled')))
    throw invalidRequestError(`thinking.${type}.block_binding: Extra inputs are not permitted`);
  const dropsMismatches = block_binding?.prefix_mismatch_behavior === 'drop_block';
  const before: PrefixBlock[] = [];
  return turns.map(({ role, content }, at) => ({
    role,
    content: toBlocks(content).filter((block, index) => {
      before.push({ role, block });
      const { id, hash } = readSignature(block) ?? {};
      if (id === undefined) return true;
      if (!findAuthor(id)?.thinkingReaders?.includes(model.id)) return false;
      if (hash === hashPrefix(conversation, before)) return true;
      if (dropsMismatches) return false;
      throw invalidRequestError(
        `messages.${at}.content.${index}: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation. ` +
          'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".',
      );
    }),
  }));
}

interface PrefixBlock {
  readonly role: string;
  readonly block: MessageBlock;
}

/** Hashes what comes before a block: no other thinking, and no marks for the cache. */
function hashPrefix({ system, tools }: Conversation, blocks: readonly PrefixBlock[]): string {
  const prefix = blocks.filter(({ block }) => block.type !== 'thinking' && block.type !== 'redacted_thinking');
  const text = JSON.stringify([system, tools, prefix], (key, value) => (key === 'cache_control' ? undefined : value));
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/** Returns the model and the hash of a bound block of thinking; undefined for another block. */
function readSignature({ signature }: MessageBlock): { readonly id?: string; readonly hash?: string } | undefined {
  const text = typeof signature === 'string' ? Buffer.from(signature, 'base64').toString() : '';
  return /^(?<id>claude-[\w-]+) (?<hash>[0-9a-f]{16})$/.exec(text)?.groups;
}
