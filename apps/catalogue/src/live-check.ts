/** Compares a catalogue with the lists of models that the configured providers publish. */
import { UpstreamError } from '#application';
import { type Catalogue, compareModelList, type ModelListFile, type ProviderFile, parseModelList } from '#catalogue';
import { type ConnectedProviders, createProviders } from '#connectors';
import type { Settings } from '#foundation';

/** Limits the time for all pages of a list. */
const LIST_TIMEOUT_MS = 30_000;

/** What a live check found, one sentence each. */
export interface LiveReport {
  /** For information: how long the lists are, which providers were skipped, and the models that are new. */
  readonly results: readonly string[];
  /** Announced ends and prices that the catalogue does not have. */
  readonly warnings: readonly string[];
  /** Models that are gone or have ended, and lists that could not be read. */
  readonly problems: readonly string[];
}

const REPORT_FIELDS = { information: 'results', warning: 'warnings', problem: 'problems' } as const;

type ListingProvider = ProviderFile & { readonly modelList: ModelListFile };

/**
 * Requests the list of each provider that has one, with the addresses and keys of the settings. The calls are free.
 * @param files the providers of the catalogue
 * @param day the UTC day of the comparison
 */
export async function checkLists(
  catalogue: Catalogue,
  files: readonly ProviderFile[],
  settings: Settings,
  day: string,
): Promise<LiveReport> {
  const providers = createProviders(files, settings);
  const sold = catalogue.withAvailableEndpoints(providers);
  try {
    const listing = files.filter((file): file is ListingProvider => file.modelList !== undefined);
    const reports = await Promise.all(listing.map((file) => checkList(providers, file, sold, day)));
    return {
      results: reports.flatMap(({ results }) => results),
      warnings: reports.flatMap(({ warnings }) => warnings),
      problems: reports.flatMap(({ problems }) => problems),
    };
  } finally {
    await providers.close();
  }
}

async function checkList(
  providers: ConnectedProviders,
  { slug, modelList }: ListingProvider,
  catalogue: Catalogue,
  day: string,
): Promise<LiveReport> {
  const report: Record<keyof LiveReport, string[]> = { results: [], warnings: [], problems: [] };
  const setting = providers.findMissingSetting(slug);
  if (setting !== undefined) return { ...report, results: [`${slug}: skipped; ${setting} is not set`] };
  try {
    const pages = await providers.listModels(slug, AbortSignal.timeout(LIST_TIMEOUT_MS));
    const models = pages.flatMap((page) => parseModelList(modelList.format, page));
    report.results.push(`${slug}: ${models.length} models${providers.isSimulated(slug) ? ' of the sandbox' : ''}`);
    for (const { level, sentence } of compareModelList(catalogue, slug, models, day))
      report[REPORT_FIELDS[level]].push(`${slug}: ${sentence}`);
  } catch (error) {
    report.problems.push(`${slug}: its models could not be listed: ${describeFailure(error as Error)}`);
  }
  return report;
}

/** The messages of providers are not printed: they may be long, and contain control characters. */
function describeFailure(error: Error): string {
  return error instanceof UpstreamError && error.isCredentialRejected ? 'it rejects the key' : error.message;
}
