/** Lists the capabilities that the models, lookups and fees of a catalogue require of their providers. */
import type { Catalogue } from './catalogue.ts';
import type { MediaModel } from './catalogue-entries.ts';
import { isMediaModel } from './data-files.ts';
import { isPrivate } from './private-models.ts';

export type Capability =
  | 'chat'
  | 'responses'
  | 'embeddings'
  | 'search'
  | 'images'
  | 'videos'
  | 'speech'
  | 'transcription'
  | 'data'
  | 'privateChat';

export interface CapabilityRequirement {
  /** Slug of the provider. */
  readonly upstream: string;
  readonly capability: Capability;
  /** The entry that requires it, such as `model "openai/gpt-5"`. */
  readonly owner: string;
}

/** The only service that is a separate call. Searches of a model are part of its response. */
const WEB_SEARCH_FEE = 'web_search';

/** Returns the capability that a media model requires of its providers. */
export function getProviderCapability({ type, capabilities }: Pick<MediaModel, 'type' | 'capabilities'>): Capability {
  if (type === 'image') return 'images';
  if (type === 'video') return 'videos';
  return capabilities.includes('text_to_speech') ? 'speech' : 'transcription';
}

export function listRequirements(catalogue: Catalogue): readonly CapabilityRequirement[] {
  const requirements: CapabilityRequirement[] = [];
  for (const model of catalogue.models) {
    const owner = `model "${model.id}"`;
    if (isMediaModel(model)) {
      const capability = getProviderCapability(model);
      requirements.push(...model.endpoints.map(({ upstream }) => ({ upstream, capability, owner })));
      continue;
    }
    for (const { upstream, speaks } of model.endpoints) {
      if (isPrivate(model)) requirements.push({ upstream, capability: 'privateChat', owner });
      else if (model.type === 'embedding') requirements.push({ upstream, capability: 'embeddings', owner });
      else requirements.push(...speaks.map((capability) => ({ upstream, capability, owner })));
    }
  }
  for (const { endpoint } of catalogue.dataEndpoints)
    requirements.push({ upstream: endpoint.upstream, capability: 'data', owner: `data endpoint "${endpoint.model}"` });
  const search = catalogue.findService(WEB_SEARCH_FEE);
  if (search) requirements.push({ upstream: search.provider, capability: 'search', owner: `fee "${WEB_SEARCH_FEE}"` });
  return requirements;
}
