/** Resolves the model name of a request to a private model. */
import type { Enclaves } from './enclaves.ts';
import { MODEL_ID_PATTERN, PRIVATE_MODEL_PREFIX } from './gateway-client.ts';
import { ProxyError } from './proxy-error.ts';

export interface ResolvedPrivateModel {
  /** Without the prefix. */
  readonly id: string;
  /** Maximum number of tokens of a response, if it is known. */
  readonly maxOutputTokens: number | undefined;
}

const NOT_FOUND = { param: 'model', code: 'model_not_found' } as const;

export class PrivateModelResolver {
  /** @param defaultModel for requests without a private model; with or without the prefix */
  constructor(
    private readonly enclaves: Enclaves,
    private readonly defaultModel: string | undefined,
  ) {}

  /**
   * Resolves the model name of a request, and adds the limit of the model from the gateway's list.
   * @throws ProxyError
   */
  async resolve(requested: unknown): Promise<ResolvedPrivateModel> {
    const id = await this.resolveId(requested);
    return { id, maxOutputTokens: (await this.enclaves.findModel(PRIVATE_MODEL_PREFIX + id))?.maxOutputTokens };
  }

  /**
   * A name with the prefix is used as it is. Any other name means the private model of that name if there is one, else
   * the default model. If there is neither a name nor a default model, the only private model is used.
   * @returns the id without the prefix
   * @throws ProxyError 400 or 404 if the name is invalid or no model is found, or an error of `Enclaves.listModels`
   */
  private async resolveId(requested: unknown): Promise<string> {
    if (requested !== undefined && requested !== null && typeof requested !== 'string') {
      throw new ProxyError(400, 'model must be a string', { param: 'model' });
    }
    const name = requested ?? '';
    if (name.startsWith(PRIVATE_MODEL_PREFIX)) return parsePrivateId(name);
    const ids = (await this.enclaves.listModels()).map(({ id }) => id);
    if (ids.includes(PRIVATE_MODEL_PREFIX + name)) return name;
    const defaultId = this.defaultModel && stripPrivatePrefix(this.defaultModel);
    if (defaultId && ids.includes(PRIVATE_MODEL_PREFIX + defaultId)) return defaultId;
    if (this.defaultModel)
      throw new ProxyError(
        404,
        `${describeInvalidDefault(this.defaultModel)}; available: ${ids.join(', ')}`,
        NOT_FOUND,
      );
    if (name === '' && ids.length === 1) return stripPrivatePrefix(ids[0] as string);
    const choice = `available: ${ids.join(', ') || 'none'}; choose one, or set PRIVATE_MODEL for such requests`;
    throw name === ''
      ? new ProxyError(400, `Missing model; ${choice}`, { param: 'model' })
      : new ProxyError(404, `The model is not a private model; ${choice}`, NOT_FOUND);
  }
}

/** Returns the message for a `PRIVATE_MODEL` that the gateway does not have. */
export function describeInvalidDefault(defaultModel: string): string {
  return `PRIVATE_MODEL is ${defaultModel}, which is not a private model of the gateway`;
}

export function stripPrivatePrefix(id: string): string {
  return id.startsWith(PRIVATE_MODEL_PREFIX) ? id.slice(PRIVATE_MODEL_PREFIX.length) : id;
}

function parsePrivateId(id: string): string {
  if (MODEL_ID_PATTERN.test(id) && id.length > PRIVATE_MODEL_PREFIX.length) return stripPrivatePrefix(id);
  throw new ProxyError(404, 'Private model not found', NOT_FOUND);
}
