/** Which private model a caller means. */
import type { Enclaves } from './enclaves.ts';
import { MODEL_ID_PATTERN, PRIVATE_MODEL_PREFIX } from './gateway-client.ts';
import { ProxyError } from './proxy-error.ts';

/** A private model. */
export interface ResolvedPrivateModel {
  /** Without the prefix. */
  readonly id: string;
  /** The most tokens that it answers with, where that is known. */
  readonly maxOutputTokens: number | undefined;
}

const NOT_FOUND = { param: 'model', code: 'model_not_found' } as const;

export class PrivateModelResolver {
  /** @param defaultModel for requests that name none, or one that is not private; with or without the prefix */
  constructor(
    private readonly enclaves: Enclaves,
    private readonly defaultModel: string | undefined,
  ) {}

  /**
   * What a caller means by a name, and what the gateway says of it.
   * @throws ProxyError
   */
  async resolve(requested: unknown): Promise<ResolvedPrivateModel> {
    const id = await this.resolveId(requested);
    return { id, maxOutputTokens: (await this.enclaves.findModel(PRIVATE_MODEL_PREFIX + id))?.maxOutputTokens };
  }

  /**
   * With the prefix it is that one and no other. Without it, it is the private model of that name if there is one, else the
   * one by default, or the only one where none was named.
   * @returns the id without the prefix
   * @throws ProxyError that names those there are
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
      throw new ProxyError(404, `${describeInvalidDefault(this.defaultModel)}: ${ids.join(', ')}`, NOT_FOUND);
    if (name === '' && ids.length === 1) return stripPrivatePrefix(ids[0] as string);
    const choice = `Choose one of ${ids.join(', ') || 'none, since the gateway has none'}, or set PRIVATE_MODEL for requests like this`;
    throw name === ''
      ? new ProxyError(400, `model is missing. ${choice}`, { param: 'model' })
      : new ProxyError(404, `The model is not private. ${choice}`, NOT_FOUND);
  }
}

/** What is wrong with the setting of a model that the gateway does not have. */
export function describeInvalidDefault(defaultModel: string): string {
  return `PRIVATE_MODEL is ${defaultModel}, which is none of the private models of the gateway`;
}

export function stripPrivatePrefix(id: string): string {
  return id.startsWith(PRIVATE_MODEL_PREFIX) ? id.slice(PRIVATE_MODEL_PREFIX.length) : id;
}

function parsePrivateId(id: string): string {
  if (MODEL_ID_PATTERN.test(id) && id.length > PRIVATE_MODEL_PREFIX.length) return stripPrivatePrefix(id);
  throw new ProxyError(404, 'There is no such private model', NOT_FOUND);
}
