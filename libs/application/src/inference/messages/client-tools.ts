/**
 * Anthropic's tools that the client runs: a shell, a text editor, a memory and a computer. Anthropic's own endpoint
 * gets them as they are, in the field `anthropic_tool` of a chat's tool. Every other endpoint gets a function with the
 * published parameters: https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview
 */
import type { JsonObject } from '#kernel';
import { invalidRequest } from '../../errors.ts';

interface ClientTool {
  readonly name: string;
  /** The tool's own options. */
  readonly options?: Readonly<Record<string, OptionRule>>;
  /** Returns the function that the tool becomes. */
  define(options: JsonObject): Definition;
}

interface Definition {
  readonly description: string;
  readonly parameters: JsonObject;
}

interface OptionRule {
  readonly isRequired?: true;
  readonly requirement: string;
  isValid(value: unknown): boolean;
}

const POSITIVE_INTEGER: OptionRule = { requirement: 'a positive integer', isValid: isPositiveInteger };

const text = (description: string) => ({ type: 'string', description });
const integer = (description: string) => ({ type: 'integer', description });
const integers = (count: number, description: string) => ({
  type: 'array',
  items: { type: 'integer' },
  minItems: count,
  maxItems: count,
  description,
});

const VIEW_RANGE = integers(2, 'For view: the first and the last line, counted from 1; -1 is the end of the file');

const BASH: ClientTool = {
  name: 'bash',
  define: () => ({
    description:
      'Runs a command in a bash shell, whose session has the same state in all calls. Or restarts the shell.',
    parameters: {
      type: 'object',
      properties: {
        command: text('The command to run; required unless the shell is restarted'),
        restart: { type: 'boolean', description: 'Whether the shell is restarted' },
      },
    },
  }),
};

const EDIT_COMMANDS = ['view', 'create', 'str_replace', 'insert'];
const EDITING =
  'view shows a file or lists a directory. create writes file_text to a file. str_replace replaces old_str, which must occur exactly once, with new_str.';

/** The first versions can undo, and `insert` has its text in another field. */
function createTextEditor(version: 'first' | 'second', options: ClientTool['options'] = {}): ClientTool {
  const [name, insertField] =
    version === 'first' ? ['str_replace_editor', 'new_str'] : ['str_replace_based_edit_tool', 'insert_text'];
  const undo = version === 'first' ? ' undo_edit reverts the last edit of the file.' : '';
  return {
    name,
    options,
    define: ({ max_characters }) => ({
      description: `Views, creates and edits text files. ${EDITING} insert adds ${insertField} after the line insert_line.${undo}${max_characters ? ` view shows at most ${max_characters} characters.` : ''}`,
      parameters: {
        type: 'object',
        properties: {
          command: { type: 'string', enum: [...EDIT_COMMANDS, ...(undo ? ['undo_edit'] : [])] },
          path: text('Absolute path to the file or directory'),
          view_range: VIEW_RANGE,
          file_text: text('For create: the content of the file'),
          old_str: text('For str_replace: the text to replace, with its exact whitespace'),
          new_str: text('For str_replace: the new text'),
          insert_line: integer('For insert: the line before the text; 0 is the start of the file'),
          ...(insertField === 'new_str' ? {} : { insert_text: text('For insert: the text') }),
        },
        required: ['command', 'path'],
      },
    }),
  };
}

const MEMORY: ClientTool = {
  name: 'memory',
  define: () => ({
    description: `Reads and writes files in the directory /memories, which persists between conversations. View it before a task, and record progress in it. ${EDITING} insert adds insert_text after the line insert_line. delete removes a file or directory. rename moves old_path to new_path.`,
    parameters: {
      type: 'object',
      properties: {
        command: { type: 'string', enum: [...EDIT_COMMANDS, 'delete', 'rename'] },
        path: text('For all commands except rename: a path in /memories'),
        view_range: VIEW_RANGE,
        file_text: text('For create: the content of the file'),
        old_str: text('For str_replace: the text to replace'),
        new_str: text('For str_replace: the new text'),
        insert_line: integer('For insert: the line before the text; 0 is the start of the file'),
        insert_text: text('For insert: the text'),
        old_path: text('For rename: the current path'),
        new_path: text('For rename: the new path'),
      },
      required: ['command'],
    },
  }),
};

const FIRST_ACTIONS = [
  'screenshot',
  'cursor_position',
  'mouse_move',
  'left_click',
  'right_click',
  'middle_click',
  'double_click',
  'left_click_drag',
  'type',
  'key',
];
const FIRST_INPUTS = {
  coordinate: integers(2, 'Where the action happens: [x, y] in pixels from the upper left corner'),
  text: text('For type: the text. For key and hold_key: the keys, such as "ctrl+s". For clicks: keys to hold'),
};
const LATER_ACTIONS = [
  ...FIRST_ACTIONS,
  'triple_click',
  'left_mouse_down',
  'left_mouse_up',
  'scroll',
  'hold_key',
  'wait',
];
const LATER_INPUTS = {
  ...FIRST_INPUTS,
  start_coordinate: integers(2, 'For left_click_drag: where the drag starts: [x, y]'),
  scroll_direction: { type: 'string', enum: ['up', 'down', 'left', 'right'] },
  scroll_amount: integer('For scroll: the number of wheel clicks'),
  duration: { type: 'number', description: 'For wait and hold_key: seconds' },
};

/** @param listInputs returns the actions and their inputs */
function createComputer(
  listInputs: (options: JsonObject) => readonly [actions: readonly string[], inputs: JsonObject],
  options: ClientTool['options'] = {},
): ClientTool {
  return {
    name: 'computer',
    options: {
      display_width_px: { ...POSITIVE_INTEGER, isRequired: true },
      display_height_px: { ...POSITIVE_INTEGER, isRequired: true },
      display_number: { requirement: 'an integer from 0', isValid: (value) => value === 0 || isPositiveInteger(value) },
      ...options,
    },
    define: (provided) => {
      const [actions, inputs] = listInputs(provided);
      return {
        description: `Controls a computer by its screen, keyboard and mouse. The screen has ${provided.display_width_px} x ${provided.display_height_px} pixels. Take a screenshot before the first action, and after an action to check its effect. Click the center of an element.`,
        parameters: {
          type: 'object',
          properties: { action: { type: 'string', enum: actions }, ...inputs },
          required: ['action'],
        },
      };
    },
  };
}

const ZOOM_REGION = integers(4, 'For zoom, which shows a part of the screen in full resolution: [x1, y1, x2, y2]');

const TOOLS: ReadonlyMap<unknown, ClientTool> = new Map<unknown, ClientTool>([
  ['bash_20241022', BASH],
  ['bash_20250124', BASH],
  ['text_editor_20241022', createTextEditor('first')],
  ['text_editor_20250124', createTextEditor('first')],
  ['text_editor_20250429', createTextEditor('second')],
  ['text_editor_20250728', createTextEditor('second', { max_characters: POSITIVE_INTEGER })],
  ['memory_20250818', MEMORY],
  ['computer_20241022', createComputer(() => [FIRST_ACTIONS, FIRST_INPUTS])],
  ['computer_20250124', createComputer(() => [LATER_ACTIONS, LATER_INPUTS])],
  [
    'computer_20251124',
    createComputer(
      ({ enable_zoom }) =>
        enable_zoom === true
          ? [[...LATER_ACTIONS, 'zoom'], { ...LATER_INPUTS, region: ZOOM_REGION }]
          : [LATER_ACTIONS, LATER_INPUTS],
      { enable_zoom: { requirement: 'a boolean', isValid: (value) => typeof value === 'boolean' } },
    ),
  ],
]);

export interface ParsedClientTool extends Definition {
  /** The tool as Anthropic's endpoint gets it. */
  readonly anthropicTool: JsonObject;
}

/**
 * Parses a tool that the client runs.
 * @param param path of the tool in the request
 * @returns undefined for another tool
 * @throws InvalidRequestError (400) naming the field that is invalid
 */
export function parseClientTool(tool: JsonObject, param: string): ParsedClientTool | undefined {
  const { type, name, strict, input_examples } = tool;
  const clientTool = TOOLS.get(type);
  if (!clientTool) return undefined;
  if (name !== clientTool.name) throw invalidRequest(`${param}.name must be "${clientTool.name}"`, `${param}.name`);
  const options = parseOptions(tool, clientTool, param);
  const examples = Array.isArray(input_examples) && input_examples.length > 0 ? { input_examples } : {};
  const anthropicTool = { type, name, ...options, ...(strict === true ? { strict } : {}), ...examples };
  return { ...clientTool.define(options), anthropicTool };
}

function parseOptions(tool: JsonObject, { options = {} }: ClientTool, param: string): JsonObject {
  const entries = Object.entries(options).flatMap(([name, { requirement, isRequired, isValid }]) => {
    const value = tool[name] ?? undefined;
    if (value === undefined && !isRequired) return [];
    if (!isValid(value)) throw invalidRequest(`${param}.${name} must be ${requirement}`, `${param}.${name}`);
    return [[name, value] as const];
  });
  return Object.fromEntries(entries);
}

function isPositiveInteger(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) > 0;
}
