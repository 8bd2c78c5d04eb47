/** Translates OpenAI's messages to Gemini's contents. */
import { WorkParts } from '#application';
import { isJsonObject, type JsonObject } from '#kernel';
import { invalidRequest } from '../../http/field-filter.ts';
import { parseDataUrl } from '../chat/data-url.ts';
import { parseToolArguments } from '../chat/tool-arguments.ts';
import { toSignatures } from './thought-signatures.ts';

/** Images by the end of their URL. */
const IMAGE_TYPES: ReadonlyMap<string, string> = new Map([
  ['png', 'image/png'],
  ['jpg', 'image/jpeg'],
  ['jpeg', 'image/jpeg'],
  ['webp', 'image/webp'],
  ['heic', 'image/heic'],
  ['heif', 'image/heif'],
]);

/** The declared type of an image whose URL has no known end: Google rejects a file that is not an image. */
const ANY_IMAGE_TYPE = 'image/jpeg';
/** Google reads these addresses as videos, whatever type is declared, and counts up to 300 tokens for each second. */
const VIDEO_HOST = /(^|\.)(youtube\.com|youtube-nocookie\.com|youtu\.be)\.?$/;
/** Files at this address belong to the operator's project, for example generated videos. */
const PROJECT_FILES_HOST = /^generativelanguage\.googleapis\.com\.?$/;

/** Files of other types, such as recordings, may have prices of their own: https://ai.google.dev/gemini-api/docs/pricing */
const DOCUMENT_TYPE = /^(application\/pdf|text\/[\w.+-]+)$/;

/**
 * Stands for the signature of a call that the model did not make itself: without one, Gemini 3 rejects the call
 * (https://ai.google.dev/gemini-api/docs/thought-signatures).
 */
const NO_SIGNATURE = 'skip_thought_signature_validator';

export interface GeminiContent {
  readonly role: 'user' | 'model';
  readonly parts: JsonObject[];
}

/**
 * Separates the system and developer messages. Of the others, merges consecutive messages of the same side into one
 * content: Google requires that the results of parallel calls are in one.
 * @param model the signatures of another model are not sent
 */
export async function toContents(
  messages: readonly JsonObject[],
  model: string,
): Promise<{ readonly system: readonly JsonObject[]; readonly contents: readonly GeminiContent[] }> {
  const work = new WorkParts();
  const system: JsonObject[] = [];
  const contents: GeminiContent[] = [];
  const names = new Map<unknown, unknown>();
  for (const message of messages) {
    await work.rest();
    const { role, content } = message;
    if (role === 'system' || role === 'developer') {
      system.push(...(await toParts(content, work)));
      continue;
    }
    const side = role === 'assistant' ? 'model' : 'user';
    const parts =
      role === 'assistant'
        ? await toModelParts(message, { names, model, work })
        : role === 'tool'
          ? [await toFunctionResponse(message, names, work)]
          : await toParts(content, work);
    const last = contents.at(-1);
    if (last?.role === side) last.parts.push(...parts);
    else if (parts.length > 0) contents.push({ role: side, parts: [...parts] });
  }
  return { system, contents };
}

interface ModelTurnContext {
  /** The names of the called functions by the ids of their calls. */
  readonly names: Map<unknown, unknown>;
  readonly model: string;
  readonly work: WorkParts;
}

/** Of parallel calls, Gemini signs and requires only the first. */
async function toModelParts(
  { content, tool_calls, reasoning_details }: JsonObject,
  { names, model, work }: ModelTurnContext,
): Promise<JsonObject[]> {
  const parts = await toParts(content, work);
  const signatures = toSignatures(reasoning_details, model);
  for (const [at, { id, function: called }] of toArray(tool_calls).entries()) {
    const { name, arguments: text } = (called ?? {}) as JsonObject;
    names.set(id, name);
    const thoughtSignature = signatures.get(id) ?? (at === 0 ? NO_SIGNATURE : undefined);
    parts.push({
      functionCall: { id, name, args: parseArguments(text) },
      ...(thoughtSignature === undefined ? {} : { thoughtSignature }),
    });
    await work.rest();
  }
  return parts;
}

/** @throws UpstreamError with `invalid_request`: Google's API accepts only an object */
function parseArguments(sent: unknown): JsonObject {
  const args = parseToolArguments(sent);
  if (isJsonObject(args)) return args;
  throw invalidMessages('The arguments of a tool call must be a JSON object');
}

/** Texts are the output or the error of the function, and other parts accompany them. */
async function toFunctionResponse(
  { tool_call_id: id, content, is_error }: JsonObject,
  names: ReadonlyMap<unknown, unknown>,
  work: WorkParts,
): Promise<JsonObject> {
  const name = names.get(id);
  if (name === undefined) throw invalidMessages('The tool_call_id of a tool message must be the id of an earlier call');
  const all = await toParts(content, work);
  const texts = all.flatMap(({ text }) => (typeof text === 'string' ? [text] : []));
  const files = all.filter((part) => part.text === undefined);
  return {
    functionResponse: {
      id,
      name,
      response: { [is_error === true ? 'error' : 'output']: texts.join('\n') },
      ...(files.length === 0 ? {} : { parts: files }),
    },
  };
}

async function toParts(content: unknown, work: WorkParts): Promise<JsonObject[]> {
  if (typeof content === 'string') return toTextParts(content);
  const parts: JsonObject[] = [];
  for (const part of toArray(content)) {
    parts.push(...toPart(part));
    await work.rest();
  }
  return parts;
}

function toPart({ type, text, refusal, image_url, file, input_audio, video_url }: JsonObject): readonly JsonObject[] {
  switch (type) {
    case 'text':
      return toTextParts(text);
    case 'refusal':
      return toTextParts(refusal);
    case 'image_url':
      return [toImage(getUrl(image_url))];
    case 'video_url':
      return [toVideo(getUrl(video_url))];
    case 'file':
      return [toDocument(file)];
    case 'input_audio':
      return [toAudio(input_audio)];
    default:
      throw invalidMessages(`Content parts of the type "${type}" are not supported by this model`);
  }
}

/** Leaves out empty text, which Google rejects. */
function toTextParts(text: unknown): JsonObject[] {
  return typeof text === 'string' && text !== '' ? [{ text }] : [];
}

function getUrl(value: unknown): unknown {
  return isJsonObject(value) ? value.url : value;
}

/** Declares an image, because another file may have many times the tokens that were held for an image. */
function toImage(url: unknown): JsonObject {
  const inlineData = toInlineData(url);
  if (inlineData) return { inlineData };
  const { href, hostname, pathname } = parseUrl(url, 'image_url');
  if (VIDEO_HOST.test(hostname)) throw invalidMessages('image_url must be the URL of an image, not of a video');
  const extension = /\.(\w+)$/.exec(pathname)?.[1]?.toLowerCase() ?? '';
  return { fileData: { mimeType: IMAGE_TYPES.get(extension) ?? ANY_IMAGE_TYPE, fileUri: href } };
}

function toVideo(url: unknown): JsonObject {
  const inlineData = toInlineData(url);
  return inlineData ? { inlineData } : { fileData: { fileUri: parseUrl(url, 'video_url').href } };
}

/** Google fetches public URLs itself: https://ai.google.dev/gemini-api/docs/file-input-methods#external-urls */
function parseUrl(url: unknown, field: string): URL {
  const parsed = typeof url === 'string' ? URL.parse(url) : null;
  if (parsed && /^https?:$/.test(parsed.protocol) && !PROJECT_FILES_HOST.test(parsed.hostname)) return parsed;
  throw invalidMessages(`${field} must be a base64 data: URL or a public http or https URL`);
}

function toDocument(file: unknown): JsonObject {
  const inlineData = toInlineData(isJsonObject(file) ? file.file_data : undefined);
  if (inlineData && DOCUMENT_TYPE.test(inlineData.mimeType)) return { inlineData };
  throw invalidMessages('file_data must be a base64 data: URL of a PDF document or a text');
}

/** OpenAI's formats are `wav` and `mp3`. */
function toAudio(audio: unknown): JsonObject {
  const { data, format } = isJsonObject(audio) ? audio : {};
  if (typeof data !== 'string' || typeof format !== 'string' || !/^\w+$/.test(format))
    throw invalidMessages('input_audio must have data in base64 and a format, such as "wav" or "mp3"');
  return { inlineData: { mimeType: `audio/${format}`, data } };
}

function toInlineData(url: unknown): { readonly mimeType: string; readonly data: string } | undefined {
  const parsed = parseDataUrl(url);
  return parsed && { mimeType: parsed.mediaType, data: parsed.data };
}

function toArray(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value : [];
}

function invalidMessages(message: string) {
  return invalidRequest(message, 'messages');
}
