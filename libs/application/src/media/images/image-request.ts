/** What a request for images wants of a model: read once, the same for every endpoint that may serve it. */
import type { Choice, Choices, Endpoint, MediaModel } from '#catalogue';
import { UnservableRequest } from '../../failures.ts';
import type { MediaParameters } from '../../inference/vocabulary/media-calls.ts';
import { ratioFor } from './sizes.ts';

/** A request in OpenAI's shape with the aliases that clients have for it, as far as the gateway reads it. */
export interface ImageBody {
  readonly model: string;
  readonly prompt?: string | null;
  readonly n?: number | null;
  readonly num_images?: number | null;
  readonly size?: string | null;
  readonly aspect_ratio?: string | null;
  readonly quality?: string | null;
  readonly resolution?: string | null;
  readonly provider?: unknown;
  readonly [field: string]: unknown;
}

export interface WantedImages {
  readonly count: number;
  /** Empty for models that take none. */
  readonly prompt: string;
  /** A word for each thing that the model leaves to choose: its price depends on them. */
  readonly choices: Choices;
  /** The same, and what else was said of the result, by our names. */
  readonly parameters: MediaParameters;
}

const LONGEST_PROMPT = 32_000;
/** What says nothing: the model's own default. */
const UNSAID: ReadonlySet<unknown> = new Set([undefined, null, '', 'auto']);
/** Beside choices. A model is told those of them that it knows. */
const PASSED = [
  'negative_prompt',
  'output_format',
  'output_compression',
  'background',
  'moderation',
  'seed',
  'user',
] as const;

/** @throws UnservableRequest 400 that names the field, and what it may be */
export function wantedImages(body: ImageBody, model: MediaModel): WantedImages {
  const choices = choicesIn(body, model);
  const passed = PASSED.flatMap((name) => (UNSAID.has(body[name]) ? [] : [[name, body[name]] as const]));
  return {
    count: countIn(body, model),
    prompt: promptIn(body, model),
    choices,
    parameters: { ...(Object.fromEntries(passed) as MediaParameters), ...choices },
  };
}

/** What an endpoint is told: what it knows of it. */
export function parametersFor({ parameters }: Endpoint, wanted: WantedImages): MediaParameters {
  return Object.fromEntries(Object.entries(wanted.parameters).filter(([name]) => parameters.includes(name)));
}

export function takesPrompt({ endpoints }: Pick<MediaModel, 'endpoints'>): boolean {
  return endpoints.some(({ parameters }) => parameters.includes('prompt'));
}

/** A model that makes one picture of one, such as an upscaler, does not know how many are wanted. */
function countIn(body: ImageBody, { id, maxImages = 1 }: MediaModel): number {
  const field = (body.n ?? undefined) === undefined ? 'num_images' : 'n';
  const count = body[field] ?? 1;
  if (maxImages === 1) return 1;
  if (count > maxImages) throw new UnservableRequest(400, `${field} must be at most ${maxImages} for ${id}`, field);
  return count;
}

function promptIn({ prompt }: ImageBody, model: MediaModel): string {
  if (!takesPrompt(model)) return '';
  const { maxPrompt = LONGEST_PROMPT } = model;
  if (typeof prompt !== 'string' || prompt.trim() === '')
    throw new UnservableRequest(400, `prompt is required for ${model.id}`, 'prompt');
  if (prompt.length <= maxPrompt) return prompt;
  const most = maxPrompt.toLocaleString('en-US');
  throw new UnservableRequest(400, `prompt may have at most ${most} characters for ${model.id}`, 'prompt');
}

function choicesIn(body: ImageBody, { id, choices = {} }: MediaModel): Choices {
  const chosen: Partial<Record<Choice, string>> = {};
  for (const [choice, words = []] of Object.entries(choices)) {
    const field = choice === 'size' && !UNSAID.has(body.aspect_ratio) ? 'aspect_ratio' : choice;
    const said = body[field];
    const word = UNSAID.has(said) ? words[0] : wordFor(choice, String(said), words);
    if (word === undefined)
      throw new UnservableRequest(400, `${field} must be one of ${words.join(', ')} for ${id}`, field);
    chosen[choice as Choice] = word;
  }
  return chosen;
}

function wordFor(choice: string, said: string, words: readonly string[]): string | undefined {
  if (choice === 'size') return ratioFor(said, words);
  return words.find((word) => word.toLowerCase() === said.toLowerCase());
}
