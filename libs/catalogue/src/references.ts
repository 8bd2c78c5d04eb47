/** Checks what models refer to by name, also in other files. */
import { type FeeFile, isMediaModel, nameModels } from './data-files.ts';
import type { AnyModelFile } from './media-file.ts';
import { checkEnclaves } from './private-models.ts';
import { checkUpstreams, type ProviderFile } from './provider-file.ts';
import { checkSuccessors } from './retirement.ts';
import { collectMistakes, findDuplicates, type Mistake, type ReportProblem } from './validation.ts';

/** What models refer to. Providers that are undefined are not checked. */
interface ReferencedFiles {
  readonly lists: Readonly<Record<string, unknown>>;
  readonly modelRules: Readonly<Record<string, unknown>>;
  readonly fees: readonly FeeFile[];
  readonly providers?: readonly ProviderFile[];
}

/** Returns the mistakes across files. Their paths start with the index of the model. */
export function findReferenceMistakes(models: readonly AnyModelFile[], files: ReferencedFiles): readonly Mistake[] {
  return [
    ...findRepeatedNames(models),
    ...collectMistakes(nameModels(models), (report) => {
      checkSuccessors(models, report);
      checkReferences(models, files, report);
      if (!files.providers) return;
      checkEnclaves(models, files.providers, report);
      checkUpstreams(models, files.providers, report);
    }),
  ];
}

function findRepeatedNames(models: readonly AnyModelFile[]): readonly Mistake[] {
  const names = models.flatMap(({ id, aliases = [] }, i) => [
    { name: id, path: [i, 'id'] },
    ...aliases.map((name, a) => ({ name, path: [i, 'aliases', a] })),
  ]);
  return findDuplicates(names.map(({ name }) => name)).map(([name, i]) => ({
    message: `model "${name}" is defined twice`,
    path: names[i]?.path ?? [],
  }));
}

function checkReferences(
  models: readonly AnyModelFile[],
  { lists, modelRules, fees }: ReferencedFiles,
  report: ReportProblem,
): void {
  const types = new Map(models.map(({ id, type }) => [id, type]));
  const feeNames = new Set(fees.map(({ name }) => name));
  for (const [i, model] of models.entries()) {
    for (const [suffix, variant] of Object.entries(isMediaModel(model) ? {} : (model.variants ?? {})))
      if (types.get(variant) !== 'chat') report(`names "${variant}", which is not a chat model`, i, 'variants', suffix);
    for (const [e, endpoint] of model.endpoints.entries()) {
      if (typeof endpoint.parameters === 'string' && !Object.hasOwn(lists, endpoint.parameters))
        report(`names the list "${endpoint.parameters}", which does not exist`, i, 'endpoints', e, 'parameters');
      if (typeof endpoint.modelRules === 'string' && !Object.hasOwn(modelRules, endpoint.modelRules))
        report(`names the rules "${endpoint.modelRules}", which do not exist`, i, 'endpoints', e, 'modelRules');
    }
    for (const [e, { searchFee }] of (isMediaModel(model) ? [] : model.endpoints).entries())
      if (searchFee !== undefined && !feeNames.has(searchFee))
        report(`names the fee "${searchFee}", which does not exist`, i, 'endpoints', e, 'searchFee');
  }
}
