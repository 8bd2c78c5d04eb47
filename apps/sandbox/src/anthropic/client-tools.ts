/** Anthropic's tools that the client runs: https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview */
import { type JsonObject } from '#kernel';
import type { Tool } from '../provider/tools.ts';
import { invalidRequestError } from './errors.ts';

interface ClientTool {
  readonly name: string;
  readonly beta?: string;
  readonly fields?: readonly string[];
  readonly required?: readonly string[];
  /** JSON schema of its arguments, as far as the sandbox uses it. */
  readonly schema: unknown;
}

const COMMON_FIELDS = ['type', 'name', 'cache_control', 'input_examples', 'strict', 'allowed_callers', 'defer_loading'];

const selection = (field: string, value: string) => ({
  type: 'object',
  properties: { [field]: { enum: [value] }, path: { const: '/memories' } },
  required: field === 'command' ? [field, 'path'] : [field],
});
const BASH = {
  name: 'bash',
  schema: { type: 'object', properties: { command: { const: 'ls' } }, required: ['command'] },
};
const EDITOR = { name: 'str_replace_based_edit_tool', schema: selection('command', 'view') };
const FIRST_EDITOR = { ...EDITOR, name: 'str_replace_editor' };
const COMPUTER = {
  name: 'computer',
  schema: selection('action', 'screenshot'),
  required: ['display_width_px', 'display_height_px'],
  fields: ['display_width_px', 'display_height_px', 'display_number'],
};

const TOOLS: ReadonlyMap<unknown, ClientTool> = new Map<unknown, ClientTool>([
  ['bash_20241022', { ...BASH, beta: 'computer-use-2024-10-22' }],
  ['bash_20250124', BASH],
  ['text_editor_20241022', { ...FIRST_EDITOR, beta: 'computer-use-2024-10-22' }],
  ['text_editor_20250124', FIRST_EDITOR],
  ['text_editor_20250429', EDITOR],
  ['text_editor_20250728', { ...EDITOR, fields: ['max_characters'] }],
  ['memory_20250818', { name: 'memory', schema: selection('command', 'view') }],
  ['computer_20241022', { ...COMPUTER, beta: 'computer-use-2024-10-22' }],
  ['computer_20250124', { ...COMPUTER, beta: 'computer-use-2025-01-24' }],
  ['computer_20251124', { ...COMPUTER, fields: [...COMPUTER.fields, 'enable_zoom'], beta: 'computer-use-2025-11-24' }],
]);

/**
 * Returns the tool with this type if it exists and the request has its beta.
 * @param where path of the tool
 * @throws HttpError 400 for other fields than the tool has
 */
export function parseClientTool(tool: JsonObject, betas: string, where: string): Tool | undefined {
  const clientTool = TOOLS.get(tool.type);
  if (!clientTool || (clientTool.beta !== undefined && !betas.split(',').includes(clientTool.beta))) return undefined;
  const { name, schema, fields = [], required = [] } = clientTool;
  const at = `${where}.${tool.type}`;
  if (tool.name !== name) throw invalidRequestError(`${at}.name: Input should be '${name}'`);
  const unknown = Object.keys(tool).find((field) => !COMMON_FIELDS.includes(field) && !fields.includes(field));
  if (unknown) throw invalidRequestError(`${at}.${unknown}: Extra inputs are not permitted`);
  const missing = required.find((field) => tool[field] === undefined);
  if (missing) throw invalidRequestError(`${at}.${missing}: Field required`);
  return { name, schema };
}
