/** Validates the conversation of a chat as Google does: https://ai.google.dev/gemini-api/docs/function-calling */
import type { JsonObject } from '#kernel';
import { countTokens } from '../provider/tokens.ts';
import type { ChatModel } from './chat-models.ts';
import { createError } from './errors.ts';
import { parseFields, parseList } from './fields.ts';

export interface ChatPart {
  readonly text?: unknown;
  readonly functionCall?: JsonObject;
  readonly functionResponse?: JsonObject;
  readonly thoughtSignature?: unknown;
}

export interface ChatContent {
  readonly role: 'user' | 'model';
  readonly parts: readonly ChatPart[];
}

const DATA = ['text', 'inlineData', 'fileData', 'functionCall', 'functionResponse'];
const MEDIA_FIELDS = ['inlineData', 'fileData'] as const;
const MEDIA_TYPE = /^(image\/(png|jpeg|webp|heic|heif)|application\/pdf|text\/[\w.+-]+|(audio|video)\/[\w.+-]+)$/;
const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/;

/** Input tokens of a part that is not counted by its text, such as an image. */
const TOKENS_PER_MEDIUM = 85;

/** Google documents this value for calls that the model has not made itself. */
const SKIPPED = 'skip_thought_signature_validator';

/** The signature of the calls of a model. Another model rejects it. */
export function createSignature({ id }: Pick<ChatModel, 'id'>): string {
  return Buffer.from(`sandbox signature of ${id}`).toString('base64');
}

/** @throws HttpError 400 */
export function parseContents(value: unknown, model: ChatModel): readonly ChatContent[] {
  const contents = parseList(value, 'contents').map(parseContent);
  if (contents.length === 0) throw createError(400, '* GenerateContentRequest.contents: contents is not specified');
  assertCallsMatchResponses(contents);
  if (model.rejectsPrefill && contents.at(-1)?.role === 'model')
    throw createError(400, 'Requests ending with a model turn are not supported.');
  assertSignatures(contents, model);
  return contents;
}

export function parseSystemInstruction(value: unknown): readonly ChatPart[] {
  const { parts } = parseFields(value, 'system_instruction', ['role', 'parts']);
  return parseList(parts, 'system_instruction.parts').map((part, i) =>
    parsePart(part, `system_instruction.parts[${i}]`),
  );
}

function parseContent(value: unknown, index: number): ChatContent {
  const path = `contents[${index}]`;
  const { role = 'user', parts } = parseFields(value, path, ['role', 'parts']);
  if (role !== 'user' && role !== 'model') throw createError(400, 'Please use a valid role: user, model.');
  const parsed = parseList(parts, `${path}.parts`).map((part, i) => parsePart(part, `${path}.parts[${i}]`));
  if (parsed.length === 0)
    throw createError(400, `* GenerateContentRequest.${path}.parts: contents.parts must not be empty.`);
  return { role, parts: parsed };
}

function parsePart(sent: unknown, path: string): ChatPart {
  const part = parseFields(sent, path, [...DATA, 'thought', 'thoughtSignature', 'videoMetadata', 'mediaResolution']);
  if (DATA.filter((name) => part[name] !== undefined).length !== 1)
    throw createError(
      400,
      `* GenerateContentRequest.${path}.data: required oneof field 'data' must have one initialized field`,
    );
  if (part.text !== undefined && (typeof part.text !== 'string' || part.text === ''))
    throw createError(400, `* GenerateContentRequest.${path}.data: text must not be empty`);
  assertMedia(part, path);
  const call = parseFields(part.functionCall, `${path}.function_call`, ['id', 'name', 'args']);
  parseFields(call.args, `${path}.function_call.args`, Object.keys((call.args as JsonObject | undefined) ?? {}));
  const response = parseFields(part.functionResponse, `${path}.function_response`, ['id', 'name', 'response', 'parts']);
  for (const [i, medium] of parseList(response.parts, `${path}.function_response.parts`).entries()) {
    const mediumPath = `${path}.function_response.parts[${i}]`;
    assertMedia(parseFields(medium, mediumPath, MEDIA_FIELDS), mediumPath);
  }
  for (const [field, value] of [
    ['function_call', part.functionCall],
    ['function_response', part.functionResponse],
  ] as const)
    if (value !== undefined && !(value as JsonObject).name)
      throw createError(400, `* GenerateContentRequest.${path}.${field}.name: Name cannot be empty.`);
  return part;
}

function assertMedia({ inlineData, fileData }: JsonObject, path: string): void {
  const inline = parseFields(inlineData, `${path}.inline_data`, ['mimeType', 'data']);
  const file = parseFields(fileData, `${path}.file_data`, ['mimeType', 'fileUri']);
  const mimeType = inline.mimeType ?? file.mimeType;
  if ((inlineData !== undefined || mimeType !== undefined) && !MEDIA_TYPE.test(String(mimeType)))
    throw createError(400, `Unsupported MIME type: ${mimeType}`);
  if (inlineData !== undefined && !(typeof inline.data === 'string' && BASE64.test(inline.data)))
    throw createError(400, `Invalid value at '${path}.inline_data.data' (TYPE_BYTES), Base64 decoding failed`);
  if (fileData !== undefined && !/^(https?|gs):\/\//.test(String(file.fileUri)))
    throw createError(400, `Unsupported file URI type: ${file.fileUri}`);
}

/** Each content with calls must be followed by one with their responses, as many as there are calls. */
function assertCallsMatchResponses(contents: readonly ChatContent[]): void {
  for (const [at, { role, parts }] of contents.entries()) {
    const calls = parts.filter(({ functionCall }) => functionCall);
    const responses = parts.filter(({ functionResponse }) => functionResponse);
    if ((calls.length > 0 && role !== 'model') || (responses.length > 0 && role !== 'user'))
      throw createError(400, 'Please ensure that function call turns have the role model and responses the role user.');
    const before = contents[at - 1]?.parts.filter(({ functionCall }) => functionCall) ?? [];
    if (responses.length > 0 && before.length === 0)
      throw createError(400, 'Please ensure that function response turn comes immediately after a function call turn.');
    if (before.length !== responses.length)
      throw createError(
        400,
        'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
      );
    const ids = new Set(before.map(({ functionCall }) => functionCall?.id));
    const stray = responses.find(({ functionResponse }) => !ids.has(functionResponse?.id));
    if (stray)
      throw createError(400, `No function call matches the id of the function response ${stray.functionResponse?.id}.`);
  }
}

/** Within the current turn, the first call of each step needs a signature; a signature must be one of the model. */
function assertSignatures(contents: readonly ChatContent[], model: ChatModel): void {
  const start = findTurnStart(contents);
  for (const [at, { parts }] of contents.entries()) {
    const calls = parts.filter(({ functionCall }) => functionCall);
    const [first] = calls;
    if (at >= start && first && first.thoughtSignature === undefined)
      throw createError(
        400,
        `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${first.functionCall?.name}\` , position ${at + 1}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.`,
      );
    const allowed: readonly unknown[] = [undefined, SKIPPED, createSignature(model)];
    if (parts.some(({ thoughtSignature }) => !allowed.includes(thoughtSignature)))
      throw createError(400, 'Corrupted thought signature.');
  }
}

/** Returns the index after the last content of the user with a text. */
function findTurnStart(contents: readonly ChatContent[]): number {
  return contents.findLastIndex(({ role, parts }) => role === 'user' && getText(parts) !== '') + 1;
}

/** Returns the number of contents with responses of functions since the last text of the user. */
export function countRounds(contents: readonly ChatContent[]): number {
  const since = contents.slice(findTurnStart(contents));
  return since.filter(({ parts }) => parts.some(({ functionResponse }) => functionResponse)).length;
}

/** Returns the last text of the user; an empty string if there is none. */
export function getLastUserText(contents: readonly ChatContent[]): string {
  return (
    contents
      .filter(({ role }) => role === 'user')
      .map(({ parts }) => getText(parts))
      .findLast((text) => text !== '') ?? ''
  );
}

function getText(parts: readonly ChatPart[]): string {
  return parts.flatMap(({ text }) => (typeof text === 'string' ? [text] : [])).join('\n');
}

export function countPartTokens({ text, functionCall, functionResponse }: ChatPart): number {
  if (typeof text === 'string') return countTokens(text);
  if (functionCall) return countTokens(`${functionCall.name} ${JSON.stringify(functionCall.args ?? {})}`);
  return functionResponse ? countTokens(JSON.stringify(functionResponse.response ?? {})) : TOKENS_PER_MEDIUM;
}
