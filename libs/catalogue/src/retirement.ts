/**
 * The end of models and endpoints. Providers announce the day on which they stop serving a model. From 30 days before,
 * clients and the operator get a notice; from that day on, the model is not sold.
 */
import type { AnyModelFile } from './media-file.ts';
import { isPrivate } from './private-models.ts';
import type { ReportProblem } from './validation.ts';

const DAY_MS = 24 * 60 * 60_000;
const NOTICE_MS = 30 * DAY_MS;

/** The announced or past end of a model, as of the day of its catalogue. */
export interface Retirement {
  /** First UTC day on which the model is not served, such as `2026-12-11`. */
  readonly day: string;
  /** Whether this day has come. */
  readonly isOver: boolean;
  /** Id of the first model in the chain of successors that can be requested. */
  readonly successor?: string;
}

/** The fields that determine when a model ends. */
interface RetirableModel {
  readonly retires?: string;
  readonly endpoints: readonly { readonly retires?: string }[];
}

/** Returns the number of the UTC day of an instant, counted from 1970. */
export function toDayNumber(milliseconds: number): number {
  return Math.floor(milliseconds / DAY_MS);
}

/** Returns the UTC day with this number as text, such as `2026-11-29`. */
export function formatDay(dayNumber: number): string {
  return new Date(dayNumber * DAY_MS).toISOString().slice(0, 10);
}

/** @param retires the first day without the model or endpoint; undefined if its end is not known */
export function hasRetired(retires: string | undefined, day: string): boolean {
  return retires !== undefined && retires <= day;
}

/** Whether clients get a notice on this day: from 30 days before the end, and afterwards. */
export function isRetirementNear(retires: string | undefined, day: string): boolean {
  return retires !== undefined && Date.parse(retires) - NOTICE_MS <= Date.parse(day);
}

/** Returns the day on which a model ends: its own, or the one on which its last endpoint ends, if that is earlier. */
export function getRetirementDay({ retires, endpoints }: RetirableModel): string | undefined {
  const days = endpoints.map((endpoint) => endpoint.retires).filter((day) => day !== undefined);
  const lastEndpointDay = days.length === endpoints.length ? days.toSorted().at(-1) : undefined;
  return [retires, lastEndpointDay].filter((day) => day !== undefined).toSorted()[0];
}

/** Checks across files that each successor can be named to the customers of its predecessor. */
export function checkSuccessors(models: readonly AnyModelFile[], report: ReportProblem): void {
  const modelsById = new Map(models.map((model) => [model.id, model]));
  for (const [i, model] of models.entries()) {
    const problem = findSuccessorProblem(model, modelsById);
    if (problem !== undefined) report(problem, i, 'successor');
  }
}

function findSuccessorProblem(model: AnyModelFile, modelsById: ReadonlyMap<string, AnyModelFile>): string | undefined {
  if (model.successor === undefined) return undefined;
  if (getRetirementDay(model) === undefined) return 'is only allowed together with retires';
  const problem = findDifference(model, modelsById.get(model.successor));
  return problem === undefined ? findCycle(model, modelsById) : `names "${model.successor}", ${problem}`;
}

/** Returns why a successor cannot serve the requests of a model. */
function findDifference(model: AnyModelFile, successor: AnyModelFile | undefined): string | undefined {
  if (!successor) return 'which is not the id of a model';
  if (successor.type !== model.type) return `whose type is ${successor.type} instead of ${model.type}`;
  if (isPrivate(successor) !== isPrivate(model)) return `which is ${isPrivate(model) ? 'not ' : ''}a private model`;
  const supported = new Set<string>(listCapabilities(successor));
  const missing = listCapabilities(model).find((capability) => !supported.has(capability));
  return missing === undefined ? undefined : `which does not support ${missing}`;
}

function listCapabilities(model: AnyModelFile): readonly string[] {
  return 'capabilities' in model ? model.capabilities : [];
}

function findCycle({ id, successor }: AnyModelFile, modelsById: ReadonlyMap<string, AnyModelFile>): string | undefined {
  const visited = new Set([id]);
  for (let next = successor; next !== undefined; next = modelsById.get(next)?.successor) {
    if (visited.has(next)) return `leads back to "${next}"`;
    visited.add(next);
  }
  return undefined;
}

/** The fields of a model of a catalogue that decide about notices. */
interface CatalogueModel extends RetirableModel {
  readonly id: string;
  readonly successor?: string;
}

/**
 * Returns the retirements that clients get a notice of, by the ids of their models.
 * @param living models that can be requested on this day; those without endpoints are not named as successors
 */
export function findRetirements(
  living: readonly CatalogueModel[],
  retired: readonly CatalogueModel[],
  day: string,
): ReadonlyMap<string, Retirement> {
  const available = new Set(living.filter(({ endpoints }) => endpoints.length > 0).map(({ id }) => id));
  const successors = new Map([...living, ...retired].map(({ id, successor }) => [id, successor]));
  const findSuccessor = (id: string) => {
    let next = successors.get(id);
    while (next !== undefined && !available.has(next)) next = successors.get(next);
    return next;
  };
  const near = [...living, ...retired].flatMap(({ id, retires }) =>
    retires !== undefined && isRetirementNear(retires, day) ? [{ id, retires }] : [],
  );
  return new Map(
    near.map(({ id, retires }) => {
      const successor = findSuccessor(id);
      return [id, { day: retires, isOver: hasRetired(retires, day), ...(successor ? { successor } : {}) }];
    }),
  );
}
