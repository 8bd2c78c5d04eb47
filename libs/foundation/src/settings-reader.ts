/** Reads all settings, with the secrets in files and the providers of the catalogue. */
import { toSandboxUrl } from './external-service-settings.ts';
import { createKeySetting, type ProviderSettingsSpec, selectConfiguredProviders } from './provider-settings.ts';
import { type FileSetting, resolveSecretFiles } from './secret-files.ts';
import { type Environment, parseSetting, SettingError, SettingIssues } from './setting-types.ts';
import { type CommonSettings, SETTINGS, type Settings } from './settings.ts';
import { decideSimulation } from './simulation.ts';

/** Returns one sentence for every unsafe combination of valid settings. */
export type SettingsValidator = (env: Environment, providers: readonly ProviderSettingsSpec[]) => readonly string[];

/** Reads the providers of a catalogue directory (undefined: the shipped one). Throws if the catalogue is invalid. */
export type ProviderSpecsReader = (catalogueDir: string | undefined) => readonly ProviderSettingsSpec[];

/** @throws SettingError with one sentence for each invalid setting, each unsafe combination, and an invalid catalogue */
export function readSettings(
  env: Environment,
  readProviderSpecs: ProviderSpecsReader = () => [],
  validate: SettingsValidator = () => [],
): Settings {
  return new SettingsReader(readProviderSpecs, validate).read(env);
}

/** Reads settings with the providers of the catalogue. */
export class SettingsReader {
  constructor(
    private readonly readProviderSpecs: ProviderSpecsReader,
    private readonly validate: SettingsValidator = () => [],
  ) {}

  /** @throws SettingError as `readSettings` does */
  read(env: Environment): Settings {
    const issues = new SettingIssues();
    return this.collect(this.replacePaths(env, issues), issues);
  }

  /**
   * Returns the environment with the contents of files in place of their paths.
   * @throws SettingError with one sentence for each file that cannot be used
   */
  resolve(env: Environment): Environment {
    const issues = new SettingIssues();
    const resolved = this.replacePaths(env, issues);
    issues.assertNone();
    return resolved;
  }

  /** Reads settings from a result of `resolve`. @throws SettingError as `readSettings` does */
  readResolved(env: Environment): Settings {
    return this.collect(env, new SettingIssues());
  }

  /** Lists the settings whose values may be in files. */
  listFileSettings(env: Environment): readonly FileSetting[] {
    const providers = new SettingIssues().tryRead(() => this.loadProviderSpecs(env)) ?? [];
    const settings = [...Object.values<FileSetting>(SETTINGS), ...providers.map(createKeySetting)];
    return settings.filter(({ fileVariable }) => fileVariable !== undefined);
  }

  private replacePaths(env: Environment, issues: SettingIssues): Environment {
    return resolveSecretFiles(env, this.listFileSettings(env), issues);
  }

  private collect(env: Environment, issues: SettingIssues): Settings {
    const providerSpecs = issues.tryRead(() => this.loadProviderSpecs(env)) ?? [];
    const simulation = decideSimulation(env, providerSpecs);
    const { usesSandbox } = simulation;
    const common = Object.fromEntries(
      Object.entries(SETTINGS).map(([name, setting]) => [
        name,
        issues.tryRead(() => parseSetting<unknown>(setting, env, usesSandbox)),
      ]),
    ) as CommonSettings;
    const sandboxUrl = issues.tryRead(() => toSandboxUrl(env)) ?? '';
    const providers = selectConfiguredProviders(env, providerSpecs, sandboxUrl, issues);
    issues.add(...this.validate(env, providerSpecs));
    issues.assertNone();
    return { ...common, providers, simulation };
  }

  private loadProviderSpecs(env: Environment): readonly ProviderSettingsSpec[] {
    const catalogueDir = parseSetting(SETTINGS.catalogueDir, env);
    try {
      return this.readProviderSpecs(catalogueDir);
    } catch (error) {
      throw new SettingError(`The catalogue ${(error as Error).message}.`);
    }
  }
}
