import { type JsonObject } from '#kernel';

/**
 * A request in the format of Anthropic's Messages API: https://docs.claude.com/en/api/messages. The edge validates the
 * types of most fields; the others are validated here. Fields that do not change the output are ignored, such as betas
 * and the lifetime in `cache_control`. Fields that change it and are not supported are rejected (`unsupported.ts`).
 */
export interface MessagesBody {
  readonly model: string;
  readonly models?: readonly string[] | null;
  readonly messages: readonly unknown[];
  /** Required by the protocol to create a message; omitted to count tokens. */
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
