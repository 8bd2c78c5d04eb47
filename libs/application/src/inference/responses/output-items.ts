/** The output items of a response while it is generated. */
import { type JsonObject } from '#kernel';

import type { ToolName } from './toolset.ts';

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete';

export interface TextPart {
  readonly type: 'output_text';
  text: string;
  readonly annotations: JsonObject[];
  readonly logprobs: JsonObject[];
}

export interface RefusalPart {
  readonly type: 'refusal';
  refusal: string;
}

export interface MessageItem {
  readonly type: 'message';
  readonly id: string;
  status: ItemStatus;
  readonly role: 'assistant';
  readonly content: (TextPart | RefusalPart)[];
}

export interface ReasoningItem {
  readonly type: 'reasoning';
  readonly id: string;
  status: ItemStatus;
  readonly summary: { readonly type: 'summary_text'; text: string }[];
  /** The reasoning with its signatures, in the encoding of `encodeReasoning`. */
  encrypted_content?: string;
}

interface CallItemBase extends ToolName {
  readonly id: string;
  status: ItemStatus;
  readonly call_id: string;
}

interface FunctionCallItem extends CallItemBase {
  readonly type: 'function_call';
  arguments: string;
}

interface CustomCallItem extends CallItemBase {
  readonly type: 'custom_tool_call';
  input: string;
}

export type CallItem = FunctionCallItem | CustomCallItem;

export interface SearchItem {
  readonly type: 'web_search_call';
  readonly id: string;
  status: ItemStatus | 'failed';
  readonly action: { readonly type: 'search'; readonly query: string };
}

export type OutputItem = MessageItem | ReasoningItem | CallItem | SearchItem;

export const ID_PREFIX = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  custom_tool_call: 'ctc',
  web_search_call: 'ws',
} as const;
