/** Validates data files. All mistakes of a file are reported at once, each with its JSON path, which has a line. */
import type { z } from 'zod';

/** Field names and indexes from the root of a file to a value. */
export type JsonPath = readonly (string | number)[];

export interface Mistake {
  /** A sentence such as `endpoints[0].margin of model "vendor/model" must be …`. */
  readonly message: string;
  readonly path: JsonPath;
}

/** A data file has invalid, missing or unknown values. */
export class DataFileError extends Error {
  override readonly name = 'DataFileError';

  constructor(readonly mistakes: readonly Mistake[]) {
    super(joinMistakes(mistakes.map(({ message }) => message)));
  }
}

/** Limits the messages of a file that has the same mistake in every entry. */
const MAX_REPORTED_MISTAKES = 20;

/** Formats one mistake per line, up to a maximum. */
export function joinMistakes(mistakes: readonly string[]): string {
  const rest = mistakes.length - MAX_REPORTED_MISTAKES;
  const reported = mistakes.slice(0, MAX_REPORTED_MISTAKES);
  return [...reported, ...(rest > 0 ? [`and ${rest} more`] : [])].join('\n');
}

type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T;

/** The type of the data that a schema accepts. */
export type Valid<S extends z.ZodType> = DeepReadonly<z.output<S>>;

/** Names the entry that contains a path, such as `model "openai/gpt-5"`, and returns the length of its own path. */
type FindOwner = (path: JsonPath) => { readonly owner: string; readonly depth: number };

/** Reports a problem such as `must not exceed its context`, with the path of the field in the checked value. */
export type ReportProblem = (problem: string, ...path: JsonPath) => void;

/** Returns the schema with a check of several fields. It runs if each field is valid by itself. */
export function addCheck<S extends z.ZodType>(schema: S, check: (value: Valid<S>, report: ReportProblem) => void): S {
  return schema.superRefine((value, context) =>
    check(value as Valid<S>, (message, ...path) => context.addIssue({ code: 'custom', path: [...path], message })),
  );
}

/** Returns the mistakes that a check reports. */
export function collectMistakes(findOwner: FindOwner, check: (report: ReportProblem) => void): readonly Mistake[] {
  const mistakes: Mistake[] = [];
  check((problem, ...path) => mistakes.push(toMistake(findOwner, problem, path)));
  return mistakes;
}

/**
 * Returns the same object, not a copy as zod does, so that fields stay in their order.
 * @param otherMistakes that the schema does not find
 * @throws DataFileError
 */
export function validate<S extends z.ZodType>(
  schema: S,
  data: unknown,
  findOwner: FindOwner,
  otherMistakes: readonly Mistake[] = [],
): Valid<S> {
  // Without parsers that zod generates: they cost more time than they save in a file that is read once.
  const issues = schema.safeParse(data, { error: describeIssue, jitless: true }).error?.issues ?? [];
  const mistakes = [...issues.flatMap((issue) => toMistakes(findOwner, issue)), ...otherMistakes];
  if (mistakes.length > 0) throw new DataFileError(mistakes);
  return data as Valid<S>;
}

/**
 * Validates a list of entries that differ in the text of one field, by which mistakes name them.
 * @throws DataFileError
 */
export function validateNamedEntries<S extends z.ZodType>(
  schema: S,
  data: unknown,
  kind: string,
  field: string,
): Valid<S> {
  const duplicates = findDuplicates(getFields(data, field)).map(([name, i]) => ({
    message: `${kind} "${name}" is defined twice`,
    path: [i, field],
  }));
  const findOwner = nameEntries(data, kind, (entry) => entry[field]);
  return validate(schema, data, findOwner, duplicates);
}

/** Names the values of a file that has no entries, such as a map. */
export function nameFile(owner: string): FindOwner {
  return () => ({ owner, depth: 0 });
}

/** Names the entries of a list by the text that `getName` returns, or by their number if it is none. */
export function nameEntries(
  data: unknown,
  kind: string,
  getName: (entry: Readonly<Record<string, unknown>>) => unknown,
): FindOwner {
  return ([i]) => {
    if (typeof i !== 'number') return { owner: 'it', depth: 0 };
    const entry = (data as readonly (Readonly<Record<string, unknown>> | null)[])[i];
    const name = getName(entry ?? {});
    return { owner: isText(name) ? `${kind} "${name}"` : `${kind} ${i + 1}`, depth: 1 };
  };
}

/** Returns the texts that occur again in a list, with the index of each repetition. */
export function findDuplicates(names: readonly unknown[]): readonly (readonly [name: string, index: number])[] {
  const first = new Set<unknown>();
  return names.flatMap((name, i) => {
    if (isText(name) && first.has(name)) return [[name, i] as const];
    first.add(name);
    return [];
  });
}

/** Reads a field of each entry of a list that has not been validated. */
export function getFields(data: unknown, field: string): readonly unknown[] {
  return Array.isArray(data) ? data.map((entry) => entry?.[field]) : [];
}

export function isText(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '';
}

function toMistake(findOwner: FindOwner, problem: string, path: JsonPath): Mistake {
  const { owner, depth } = findOwner(path);
  const field = path.slice(depth).map((name) => (typeof name === 'number' ? `[${name}]` : `.${name}`));
  const subject = field.length > 0 ? `${field.join('').replace(/^\./, '')} of ${owner}` : owner;
  return { message: `${subject} ${problem}`, path };
}

function toMistakes(findOwner: FindOwner, issue: z.core.$ZodIssue): readonly Mistake[] {
  const path = issue.path as JsonPath;
  if (issue.code === 'too_small' && issue.origin === 'string') return []; // zod also measures a text in place of a list
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({
      ...toMistake(findOwner, `has an unknown field "${key}"`, path),
      path: [...path, key],
    }));
  if (issue.code !== 'invalid_union' || issue.errors.length === 0) return [toMistake(findOwner, issue.message, path)];
  const isOtherType = ([first]: readonly z.core.$ZodIssue[]) =>
    first?.code === 'invalid_type' && first.path.length === 0;
  const branch = issue.errors.find((issues) => !isOtherType(issues)) ?? issue.errors.at(-1) ?? [];
  return branch.flatMap((inner) => toMistakes(findOwner, { ...inner, path: [...issue.path, ...inner.path] }));
}

const TYPE_PROBLEMS: Readonly<Record<string, string>> = {
  array: 'must be a non-empty list',
  boolean: 'must be true or false',
  object: 'must be an object',
  record: 'must be an object',
};

/** Completes the sentence that begins with the field. Other schemas have messages of their own. */
function describeIssue(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code === 'invalid_type') return TYPE_PROBLEMS[issue.expected];
  if (issue.code === 'too_small' && issue.origin === 'array') return TYPE_PROBLEMS.array;
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.join(', ')}`;
  if (issue.code === 'invalid_union' && Array.isArray(issue.options))
    return `must be one of ${issue.options.join(', ')}`;
  return undefined;
}
