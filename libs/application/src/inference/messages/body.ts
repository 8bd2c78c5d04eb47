import { type JsonObject } from '#kernel';

/**
 * A request in the shape of Anthropic's Messages: https://docs.claude.com/en/api/messages. The edge has checked the types;
 * everything else is checked here. What says nothing about the answer passes by unread: `cache_control`'s life, betas.
 */
export interface MessagesBody {
  readonly model: string;
  readonly messages: readonly unknown[];
  /** The protocol demands it of a message, and has none where tokens are only counted. */
  readonly max_tokens?: number;
  readonly system?: string | readonly unknown[] | null;
  readonly tools?: readonly unknown[] | null;
  readonly tool_choice?: JsonObject | null;
  readonly thinking?: JsonObject | null;
  readonly output_config?: JsonObject | null;
  readonly stop_sequences?: readonly string[] | null;
  readonly metadata?: JsonObject | null;
  readonly cache_control?: JsonObject | null;
  readonly stream?: boolean | null;
  readonly [field: string]: unknown;
}
