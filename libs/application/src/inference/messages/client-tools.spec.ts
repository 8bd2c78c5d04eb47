import { describe, expect, test } from '@jest/globals';
import { parseClientTool } from './client-tools.ts';

const parse = (tool: object) => parseClientTool({ ...tool }, 'tools[0]');
const computer = { type: 'computer_20251124', name: 'computer', display_width_px: 1_280, display_height_px: 800 };

/** Returns the inputs of the function, and the values of the one that selects what it does. */
function listInputs(tool: object) {
  const { properties = {} } = (parse(tool)?.parameters ?? {}) as { properties?: Record<string, { enum?: string[] }> };
  return { names: Object.keys(properties), values: (properties.command ?? properties.action)?.enum };
}

describe('a tool that the client runs', () => {
  test.each([
    ['bash_20241022', 'bash'],
    ['bash_20250124', 'bash'],
    ['text_editor_20241022', 'str_replace_editor'],
    ['text_editor_20250124', 'str_replace_editor'],
    ['text_editor_20250429', 'str_replace_based_edit_tool'],
    ['text_editor_20250728', 'str_replace_based_edit_tool'],
    ['memory_20250818', 'memory'],
  ])('%s has the name %s, and Anthropic gets it as it is', (type, name) => {
    const { anthropicTool, description, parameters } =
      parse({ type, name, defer_loading: true, cache_control: {} }) ?? {};
    expect(anthropicTool).toEqual({ type, name });
    expect([description !== '', parameters?.type]).toEqual([true, 'object']);
    expect(() => parse({ type, name: 'other' })).toThrow(
      expect.objectContaining({ status: 400, param: 'tools[0].name' }),
    );
  });

  test('has the published inputs of its version', () => {
    expect(listInputs({ type: 'bash_20250124', name: 'bash' }).names).toEqual(['command', 'restart']);
    const first = listInputs({ type: 'text_editor_20250124', name: 'str_replace_editor' });
    expect(first.values).toEqual(['view', 'create', 'str_replace', 'insert', 'undo_edit']);
    expect(first.names).not.toContain('insert_text');
    const second = listInputs({ type: 'text_editor_20250728', name: 'str_replace_based_edit_tool' });
    expect(second.values).toEqual(['view', 'create', 'str_replace', 'insert']);
    expect(second.names).toContain('insert_text');
    expect(listInputs({ type: 'memory_20250818', name: 'memory' }).values).toEqual([
      'view',
      'create',
      'str_replace',
      'insert',
      'delete',
      'rename',
    ]);
    expect(listInputs({ ...computer, type: 'computer_20241022' }).values).not.toContain('scroll');
    expect(listInputs({ ...computer, type: 'computer_20250124' }).values).toContain('scroll');
    expect(listInputs(computer).values).not.toContain('zoom');
    const zooming = listInputs({ ...computer, enable_zoom: true });
    expect([zooming.values?.at(-1), zooming.names.at(-1)]).toEqual(['zoom', 'region']);
  });

  test('has its options, which the description mentions', () => {
    const options = { display_number: 0, enable_zoom: true, strict: true, input_examples: [{ action: 'screenshot' }] };
    const { anthropicTool, description } = parse({ ...computer, ...options }) ?? {};
    expect(anthropicTool).toEqual({ ...computer, ...options });
    expect(description).toContain('1280 x 800 pixels');
    const editor = { type: 'text_editor_20250728', name: 'str_replace_based_edit_tool', max_characters: 9_000 };
    expect(parse(editor)).toMatchObject({ anthropicTool: editor, description: expect.stringContaining('9000') });
    expect(parse({ ...editor, max_characters: null })?.anthropicTool).not.toHaveProperty('max_characters');
  });

  test.each([
    ['display_width_px', { ...computer, display_width_px: undefined }],
    ['display_height_px', { ...computer, display_height_px: '800' }],
    ['display_number', { ...computer, display_number: -1 }],
    ['enable_zoom', { ...computer, enable_zoom: 'yes' }],
    ['max_characters', { type: 'text_editor_20250728', name: 'str_replace_based_edit_tool', max_characters: 0 }],
  ])('is rejected with an invalid %s', (field, tool) => {
    expect(() => parse(tool)).toThrow(expect.objectContaining({ status: 400, param: `tools[0].${field}` }));
  });

  test('is no tool of another type', () => {
    for (const type of ['custom', 'web_search_20250305', 'computer_toolset_20260801', undefined])
      expect(parse({ type, name: 'computer' })).toBeUndefined();
  });
});
