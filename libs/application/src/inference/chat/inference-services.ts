import type { Clock } from '../../clock.ts';
import type { Downloader } from '../../downloads.ts';
import type { ProviderRegistry } from '../../providers/provider.ts';
import type { TokenCounter } from '../../tokens/token-counter.ts';

/** What every use case of a token-priced model needs: the providers, the counter of tokens, files by URL, and the date. */
export class InferenceServices {
  constructor(
    readonly providers: ProviderRegistry,
    readonly tokenCounter: TokenCounter,
    readonly downloads: Downloader,
    readonly clock: Clock,
  ) {}
}
