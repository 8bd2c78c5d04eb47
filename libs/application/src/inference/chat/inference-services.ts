import type { ProviderRegistry } from '../../providers/provider.ts';
import type { TokenCounter } from '../../tokens/token-counter.ts';

/** What every use case of a token-priced model needs: the providers, and the counter of tokens. */
export class InferenceServices {
  constructor(
    readonly providers: ProviderRegistry,
    readonly tokenCounter: TokenCounter,
  ) {}
}
