/** Anthropic's tools that the client runs: https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview */
import { isJsonObject, type JsonObject } from '#kernel';

/** The beta that each tool requires; undefined for one that is generally available. */
const BETA_BY_TOOL = new Map<unknown, string | undefined>([
  ['bash_20241022', 'computer-use-2024-10-22'],
  ['text_editor_20241022', 'computer-use-2024-10-22'],
  ['computer_20241022', 'computer-use-2024-10-22'],
  ['computer_20250124', 'computer-use-2025-01-24'],
  ['computer_20251124', 'computer-use-2025-11-24'],
  ['bash_20250124', undefined],
  ['text_editor_20250124', undefined],
  ['text_editor_20250429', undefined],
  ['text_editor_20250728', undefined],
  ['memory_20250818', undefined],
]);

export const CLIENT_TOOL_TYPES = [...BETA_BY_TOOL.keys()] as readonly string[];

/** Returns the tool of Anthropic that a function represents; undefined for any other value. */
export function parseClientTool(value: unknown): JsonObject | undefined {
  return isJsonObject(value) && BETA_BY_TOOL.has(value.type) ? value : undefined;
}

/** Returns the betas that the tools of a request require, each once. */
export function listToolBetas(tools: unknown): readonly string[] {
  const betas = new Set<string>();
  for (const { type } of (tools ?? []) as readonly JsonObject[]) {
    const beta = BETA_BY_TOOL.get(type);
    if (beta !== undefined) betas.add(beta);
  }
  return [...betas];
}
