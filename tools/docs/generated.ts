/** Generates the tables of settings, operations, clients, examples and errors in the documentation. */

import type { OpenApiDocument, PathOperation } from '../../apps/gateway/src/openapi/document.ts';
import type { Client } from '../proofs/clients/client.ts';
import type { Example, Language } from '../proofs/examples/example.ts';
import type { Documentation } from '../proofs/examples/list.ts';
import type { PackageLicence } from './licences.ts';

type Row = readonly string[];

/** Replaces a section of a page. Two HTML comments mark its start and end; text outside them is written by hand. */
export function replaceSection(page: string, name: string, content: string): string {
  const section = new RegExp(`<!-- ${name} -->\n.*<!-- /${name} -->`, 's');
  if (!section.test(page)) throw new Error(`the page has no section "${name}"`);
  return page.replace(section, () => `<!-- ${name} -->\n\n${content}\n<!-- /${name} -->`);
}

interface DocumentedSetting {
  readonly variable: string;
  readonly defaultValue: string;
  readonly meaning: string;
}

export function formatSettingsTable(settings: readonly DocumentedSetting[]): string {
  const rows = settings.map(({ variable, defaultValue, meaning }) => [
    formatCode(variable),
    defaultValue && formatCode(defaultValue),
    meaning,
  ]);
  return formatTable(['setting', 'default', 'what it does'], rows);
}

/** Formats one table per tag. Paths that are aliases are in the row of their operation. */
export function formatOperationTables({ tags, paths }: OpenApiDocument): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  operations.sort((one, other) => one.path.localeCompare(other.path)); // does not depend on the order of modules
  return tags
    .map(({ name, description }) => {
      const rows = operations
        .filter(({ operation }) => operation.tags.includes(name) && !operation['x-alias-of'])
        .map(({ path, method, operation }) => {
          const aliases = operations.filter((alias) => alias.operation['x-alias-of'] === operation.operationId);
          const addresses = [path, ...aliases.map((alias) => alias.path)].map((address) =>
            formatCode(`${method} ${address}`),
          );
          return [addresses.join(', '), operation.summary, formatCredential(operation), formatStatuses(operation)];
        });
      return `### ${name}\n\n${description}\n\n${formatTable(['request', 'what it does', 'credential', 'statuses'], rows)}`;
    })
    .join('\n');
}

function formatCredential({ security }: PathOperation): string {
  const schemes = security.flatMap((requirement) => Object.keys(requirement));
  if (schemes.length === 0) return 'none';
  if (Object.keys(security[0] ?? {}).length === 0) return 'optional';
  const account = schemes.includes('bearer')
    ? ['API key', 'account']
    : schemes.includes('x-credit-id')
      ? ['account']
      : [];
  return [...account, ...(schemes.includes('payment') ? ['payment'] : [])].join(' or ');
}

function formatStatuses({ responses }: PathOperation): string {
  return Object.keys(responses).join(' ');
}

type Kind = readonly [status: number, type: string, kind: string, code?: string];

export function formatErrorTable(kinds: readonly Kind[]): string {
  const rows = kinds
    .map(([status, type, kind, errorCode = type]) => [
      String(status),
      formatCode(type),
      formatCode(errorCode),
      formatCode(kind),
    ])
    .toSorted((one, other) => one.join().localeCompare(other.join()));
  return formatTable(['status', '`error.type`', '`error.code`', '`error.metadata.error_type`'], rows);
}

export function formatClientTable(clients: readonly Client[]): string {
  const rows = clients.map(({ name, description, npm, pypi, program }) => {
    const [[used = '', version = ''] = []] = program
      ? [[program.package, program.version]]
      : Object.entries({ ...npm, ...pypi });
    const language = npm ? '' : `, for ${program?.language ?? 'Python'}`;
    return [formatCode(name), `${formatCode(used)} ${version}${language}`, description];
  });
  return formatTable(['name', 'what it is', 'what it does'], rows);
}

/** Formats one table per documentation. */
export function formatExampleTables(documentations: readonly Documentation[]): string {
  return documentations
    .map(({ name, examples, programs }) => {
      const languages = programs.map(({ language }) => language);
      const rows = examples.map((example) => [
        example.name,
        formatCode(example.request),
        ...languages.map((language) => formatOutcome(example, language)),
      ]);
      const sdks = programs.map(({ language, sdk }) => {
        const [[used = '', version = ''] = []] = Object.entries({ ...sdk.npm, ...sdk.pypi });
        return `${formatCode(used)} ${version} (${language})`;
      });
      const table = formatTable(['example', 'request', ...languages], rows);
      return `### Examples of ${name}\n\nWith ${sdks.join(' and ')}.\n\n${table}`;
    })
    .join('\n');
}

function formatOutcome({ request, outcome, only }: Example, language: Language): string {
  if (only !== undefined && only !== language) return 'not in the SDK';
  if (outcome === 'works') return outcome;
  const { status, names } = outcome;
  return request.startsWith(names) ? String(status) : `${status} ${formatCode(names)}`;
}

/** @param findModel returns the id of the model that a requested name stands for, if there is one */
export function formatDefaultModelTable(
  clients: readonly Client[],
  findModel: (name: string) => string | undefined,
): string {
  // Clients with the same package have the same default models.
  const byPackage = new Map(clients.map((client) => [Object.keys(client.npm ?? {})[0], client]));
  const rows = [...byPackage].flatMap(([used = '', { npm, defaultModels }]) =>
    Object.entries(defaultModels?.requested ?? {}).map(([settings, name]) => [
      `${formatCode(used)} ${npm?.[used]} (${defaultModels?.released})`,
      settings,
      formatCode(name),
      formatCode(findModel(name) ?? 'none'),
    ]),
  );
  return formatTable(['client', 'settings', 'requested name', 'model'], rows);
}

export function formatLicenceTable(licences: readonly PackageLicence[]): string {
  const rows = licences.map(({ name, version, licence }) => [formatCode(name), version, licence]);
  return formatTable(['package', 'version', 'licence'], rows);
}

function formatTable(head: Row, rows: readonly Row[]): string {
  const widths = head.map((_, column) => Math.max(3, ...[head, ...rows].map((row) => (row[column] ?? '').length)));
  const formatRow = (row: Row) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [
    formatRow(head),
    `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`,
    ...rows.map(formatRow),
    '',
  ].join('\n');
}

function formatCode(text: string): string {
  return `\`${text}\``;
}
