/**
 * Finds environment variables that are not settings but were probably meant as such, for example with a spelling mistake.
 * They are only reported: the environment of a host has variables of other programs, which must not prevent a start.
 */
import { listProviderFileVariables, listProviderVariables, type ProviderSettingsSpec } from './provider-settings.ts';
import { type Environment, readVariable, type Setting } from './setting-types.ts';
import { SETTINGS } from './settings.ts';

const PROGRAM_PREFIX = 'COUNTINGHOUSE_';
/** Variables with these prefixes are meant for this program, if it has any setting with the prefix. */
const OWN_PREFIXES = ['TOPUP_', 'UPSTREAM_', 'UPLOADS_', 'BACKUP_', 'BTCPAY_', 'PHOENIXD_'];
/** The variables that Kubernetes and Docker create in a container for each service or linked container. */
const SERVICE_VARIABLE = /_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT_\d+_(TCP|UDP|SCTP)(_.+)?)$/;
const SERVICE_ADDRESS = /^(tcp|udp|sctp):\/\//;
/** Shorter names, such as PORT, are close to many variables of other programs. */
const MIN_LENGTH_FOR_ONE_EDIT = 6;
const MIN_LENGTH_FOR_TWO_EDITS = 9;

/** Returns one sentence for each variable that was probably meant as a setting. */
export function listUnknownSettings(env: Environment, providers: readonly ProviderSettingsSpec[]): readonly string[] {
  const definitions: readonly Setting<unknown>[] = Object.values(SETTINGS);
  const settings = [...definitions.map(({ variable }) => variable), ...listProviderVariables(providers)];
  const files = [
    ...definitions.flatMap(({ fileVariable }) => fileVariable ?? []),
    ...listProviderFileVariables(providers),
  ];
  const names = [...settings, ...files];
  const exists = new Set(names);
  return Object.keys(env)
    .filter((variable) => !exists.has(variable) && isSet(env, variable))
    .flatMap((variable) => {
      const name = variable.toUpperCase().replace(PROGRAM_PREFIX, '');
      const intended = exists.has(name) ? name : findSimilar(name, names);
      if (intended !== undefined) return [`${variable} is not a setting and has no effect; did you mean ${intended}?`];
      const isOwn = variable.startsWith(PROGRAM_PREFIX) || hasOwnPrefix(variable, settings);
      return isOwn ? [`${variable} is not a setting and has no effect.`] : [];
    });
}

function isSet(env: Environment, variable: string): boolean {
  const value = readVariable(env, variable);
  return value !== undefined && !SERVICE_VARIABLE.test(variable) && !SERVICE_ADDRESS.test(value);
}

function hasOwnPrefix(variable: string, settings: readonly string[]): boolean {
  const prefix = OWN_PREFIXES.find((start) => variable.startsWith(start));
  return prefix !== undefined && settings.some((setting) => setting.startsWith(prefix));
}

/** Returns the setting with the fewest differences; undefined if none is similar. */
function findSimilar(name: string, settings: readonly string[]): string | undefined {
  const similar = settings
    .filter((setting) => setting[0] === name[0]) // few mistakes are in the first letter
    .map((setting) => ({ setting, edits: countEdits(name, setting) }))
    .filter(({ setting, edits }) => edits <= getMaxEdits(setting) || isAbbreviation(name, setting))
    .sort((a, b) => a.edits - b.edits);
  return similar[0]?.setting;
}

function getMaxEdits({ length }: string): number {
  if (length >= MIN_LENGTH_FOR_TWO_EDITS) return 2;
  return length >= MIN_LENGTH_FOR_ONE_EDIT ? 1 : 0;
}

/** Whether the name is that of the setting without some of its parts, but with the first one and another one. */
function isAbbreviation(name: string, setting: string): boolean {
  const parts = name.split('_');
  const settingParts = setting.split('_');
  if (parts.length < 2 || parts[0] !== settingParts[0]) return false;
  let next = 0;
  for (const part of settingParts) if (part === parts[next]) next++;
  return next === parts.length;
}

/** Returns how many letters must be inserted, removed or replaced to get from one text to the other (Levenshtein). */
function countEdits(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [row, letter] of [...from].entries()) {
    const current = [row + 1];
    for (let column = 0; column < to.length; column++) {
      const replaced = (previous[column] as number) + (letter === to[column] ? 0 : 1);
      current.push(Math.min(replaced, (previous[column + 1] as number) + 1, (current[column] as number) + 1));
    }
    previous = current;
  }
  return previous[to.length] as number;
}
