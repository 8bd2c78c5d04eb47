/**
 * Clients for Java and Kotlin. Maven downloads them with all that they require when a proof needs them. Java compiles a
 * script each time it runs it; a script for Kotlin is compiled by Kotlin's compiler, which Maven downloads as well.
 * Everything is below `.proofs/jvm`.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type Client, type Command, createEnvironment, getScriptPath, type Stage } from './client.ts';
import { type Packages, PROOFS_DIR, runOrThrow } from './install.ts';

const JVM_DIR = path.join(PROOFS_DIR, 'jvm');
/** A first build downloads several hundred files. */
const DOWNLOADED_WITHIN_MS = 1_200_000;
const RESOLVE = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath';
/** A script runs for seconds, in which the optimising compiler and threads for garbage cost more than they save. */
const JAVA_OPTIONS = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'];
const CLASSPATH_FILE = 'classpath.txt';
/** The version line of Kotlin with which openai-kotlin itself is compiled. */
const KOTLIN_COMPILER = { 'org.jetbrains.kotlin:kotlin-compiler-embeddable': '2.0.21' };

interface JvmClientOptions {
  readonly name: string;
  readonly description: string;
  /** A file in `scripts/`; its extension selects the language, and its name is the name of the main class. */
  readonly script: string;
  /** Versions by `group:artifact`. The first package is the client; the others are packages that the script uses. */
  readonly maven: Packages;
  /** Environment variables of the script in addition to those of all scripts. */
  readonly env?: Readonly<Record<string, string>>;
}

function createJvmClient({ name, description, script, maven, env = {} }: JvmClientOptions): Client {
  const [[packageName = '', version = ''] = []] = Object.entries(maven);
  const { name: mainClass, ext } = path.parse(script);
  const isKotlin = ext === '.kt';
  return {
    name,
    description,
    program: {
      language: isKotlin ? 'Kotlin' : 'Java',
      package: packageName,
      version,
      async build() {
        const folder = await resolve(maven);
        if (isKotlin) await compileKotlin(script, folder);
        return folder;
      },
    },
    async command({ folder, url, key }: Stage): Promise<Command> {
      const classpath = await readClasspath(folder);
      const program = isKotlin
        ? ['-cp', `${path.join(folder, 'classes')}:${classpath}`, `${mainClass}Kt`]
        : ['-cp', classpath, getScriptPath(script)];
      return { args: ['java', ...JAVA_OPTIONS, ...program], env: { ...createEnvironment(url, key), ...env } };
    },
  };
}

/** Downloads the packages unless they are already there. @returns the folder with their class path */
async function resolve(packages: Packages): Promise<string> {
  const [[name = '', version = ''] = []] = Object.entries(packages);
  const folder = path.join(JVM_DIR, `${name.replaceAll(':', '-')}-${version}`);
  const project = createProject(packages);
  const projectFile = path.join(folder, 'pom.xml');
  const isResolved =
    // not resolved
    (await readFile(projectFile, 'utf8').catch(() => '')) === project && (await readClasspath(folder)) !== '';
  if (isResolved) return folder;
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await writeFile(projectFile, project);
  const repository = `-Dmaven.repo.local=${path.join(JVM_DIR, 'repository')}`;
  const command = ['mvn', '-q', '-B', repository, RESOLVE, `-Dmdep.outputFile=${CLASSPATH_FILE}`];
  await runTool(command, folder, 'Maven 3.8');
  return folder;
}

async function readClasspath(folder: string): Promise<string> {
  return (await readFile(path.join(folder, CLASSPATH_FILE), 'utf8').catch(() => '')).trim(); // not resolved
}

function createProject(packages: Packages): string {
  const dependencies = Object.entries(packages).map(([name, version]) => {
    const [group, artifact] = name.split(':');
    const coordinates = `<groupId>${group}</groupId><artifactId>${artifact}</artifactId><version>${version}</version>`;
    return `    <dependency>${coordinates}</dependency>`;
  });
  return [
    '<project xmlns="http://maven.apache.org/POM/4.0.0">',
    '  <modelVersion>4.0.0</modelVersion>',
    '  <groupId>proofs</groupId><artifactId>client</artifactId><version>1</version>',
    '  <dependencies>',
    ...dependencies,
    '  </dependencies>',
    '</project>\n',
  ].join('\n');
}

async function compileKotlin(script: string, folder: string): Promise<void> {
  const compiler = await readClasspath(await resolve(KOTLIN_COMPILER));
  const options = ['-no-stdlib', '-no-reflect', '-nowarn', '-cp', await readClasspath(folder), '-d', 'classes'];
  const main = 'org.jetbrains.kotlin.cli.jvm.K2JVMCompiler';
  await runTool(['java', '-cp', compiler, main, ...options, getScriptPath(script)], folder, 'Java 17');
}

/** @throws Error if the tool is missing, or does not succeed */
async function runTool(command: readonly string[], folder: string, tool: string): Promise<void> {
  await runOrThrow(command, folder, { timeoutMs: DOWNLOADED_WITHIN_MS }).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ENOENT' ? new Error(`${command[0]} is missing: install ${tool} or newer`) : error;
  });
}

const OPENAI_JAVA = {
  description: 'chats and Responses with their accumulators, tools, structured output, embeddings, streamed images',
  script: 'OpenAiJava.java',
  maven: { 'com.openai:openai-java': '4.101.0' },
};
const ANTHROPIC_JAVA = {
  description: 'Messages, complete and streaming with its accumulator, tools, web searches, token counting, models',
  script: 'AnthropicJava.java',
  maven: { 'com.anthropic:anthropic-java': '3.14.0' },
};
const WITH_VALIDATION = {
  description: 'the same, with validation of all responses',
  env: { VALIDATION: 'true' },
};

export const JVM_CLIENTS: readonly Client[] = [
  createJvmClient({ name: 'openai-java', ...OPENAI_JAVA }),
  createJvmClient({ name: 'openai-java-validation', ...OPENAI_JAVA, ...WITH_VALIDATION }),
  createJvmClient({ name: 'anthropic-java', ...ANTHROPIC_JAVA }),
  createJvmClient({ name: 'anthropic-java-validation', ...ANTHROPIC_JAVA, ...WITH_VALIDATION }),
  createJvmClient({
    name: 'langchain4j',
    description: 'chats and Messages, complete and streaming with usage, tools, structured output, embeddings',
    script: 'LangChain4j.java',
    maven: {
      'dev.langchain4j:langchain4j': '1.19.0',
      'dev.langchain4j:langchain4j-open-ai': '1.19.0',
      'dev.langchain4j:langchain4j-anthropic': '1.19.0',
    },
  }),
  createJvmClient({
    name: 'spring-ai',
    description: 'chats and Messages, complete and streaming with usage, tools, structured output, embeddings',
    script: 'SpringAi.java',
    maven: {
      'org.springframework.ai:spring-ai-openai': '2.0.1',
      'org.springframework.ai:spring-ai-anthropic': '2.0.1',
      'org.springframework.ai:spring-ai-client-chat': '2.0.1',
      // Spring Boot's list of versions selects it; without that list Maven selects one that is too old for Jackson 3.
      'com.fasterxml.jackson.core:jackson-annotations': '2.22',
    },
  }),
  createJvmClient({
    name: 'simple-openai',
    description: 'chats, complete and streaming with usage, tools, embeddings',
    script: 'SimpleOpenAi.java',
    maven: { 'io.github.sashirestela:simple-openai': '3.22.2' },
  }),
  createJvmClient({
    name: 'openai-kotlin',
    description: 'chats, complete and streaming with usage, tools, embeddings',
    script: 'OpenAiKotlin.kt',
    maven: { 'com.aallam.openai:openai-client-jvm': '4.1.0', 'io.ktor:ktor-client-cio-jvm': '3.0.0' },
  }),
];
