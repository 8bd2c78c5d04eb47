/**
 * Command lines of programs that run once, parsed by commander, and their progress. Imported as
 * `#foundation/command-line`, so that roles do not load these libraries.
 */
import { Command, CommanderError, type ErrorOptions, Help } from 'commander';
import { formatFailure } from './missing-right.ts';
import { StartError } from './start-error.ts';

export { startProgress } from './progress.ts';

/** A program, or one of its commands. Invalid arguments throw a StartError before anything runs. */
class ProgramCommand extends Command {
  constructor(name?: string) {
    super(name);
    this.hook('preSubcommand', (group, command) => {
      const [option] = Object.keys(group.opts());
      if (option !== undefined) this.error(`option '--${option}' cannot be used with '${command.name()}'`);
    });
  }

  override createCommand(name?: string): ProgramCommand {
    return new ProgramCommand(name);
  }

  override createHelp(): ProgramHelp {
    return Object.assign(new ProgramHelp(), this.configureHelp());
  }

  /** Rejects a value that begins with a dash, unless it is a number or follows `=`: it is an option after a forgotten value. */
  override parseOptions(args: string[]) {
    const end = args.indexOf('--');
    for (const [i, arg] of args.slice(0, end < 0 ? undefined : end).entries()) {
      const option = this.options.find(({ long, required }) => required && long === arg);
      const value = args[i + 1] ?? '';
      if (option && /^-[^\d.]/.test(value))
        this.error(`option '${option.flags}' argument missing; write ${arg}=${value} if it begins with a dash`);
    }
    return super.parseOptions(args);
  }

  override error(message: string, { code }: ErrorOptions = {}): never {
    const [operand] = this.args;
    const isCommandUnknown = code !== undefined && this.parent && this.commands.length > 0 && operand;
    const problem = isCommandUnknown && !operand.startsWith('-') ? `unknown command '${operand}'` : message;
    const [sentence = '', ...hints] = problem.replace('error: ', '').split('\n');
    if (code === 'commander.unknownOption' && hints.length === 0 && this.registeredArguments.length > 0)
      hints.push('(an argument that begins with a dash must follow --)');
    const text = [sentence.charAt(0).toUpperCase() + sentence.slice(1).replace(/\.$/, ''), ...hints].join(' ');
    throw new StartError(`${text}.\n${formatUsage(this)}`);
  }

  /** Called by commander if the command is missing. */
  override help(): never {
    throw new StartError(this.helpInformation({ error: true }).trimEnd());
  }
}

/** Lists all commands with their arguments, each followed by its description. */
class ProgramHelp extends Help {
  override commandUsage(command: Command): string {
    return super.commandUsage(command.usage(formatArguments(command) || ' ')).trimEnd(); // '' would be "[options]"
  }

  override visibleCommands(command: Command): Command[] {
    return listCommands(command);
  }

  override subcommandTerm(command: Command): string {
    const group = command.parent?.parent ? `${command.parent.name()} ` : '';
    return `${group}${command.name()} ${formatArguments(command)}`.trimEnd();
  }

  override formatItem(term: string, _termWidth: number, description: string, helper: Help): string {
    const indent = '\n      ';
    const lines = helper.boxWrap(description, (helper.helpWidth ?? 80) - indent.length).replaceAll('\n', indent);
    return `  ${term}${description && indent}${lines}`;
  }
}

/**
 * Creates a program to which the caller adds commands, arguments and options.
 * @param name how users call it, such as `npm run ledger --`
 * @param print receives the help
 */
export function createProgram(name: string, description: string, print = printToStdout): Command {
  return new ProgramCommand(name)
    .description(description)
    .enablePositionalOptions()
    .helpOption('--help', 'Prints this help.')
    .helpCommand(false)
    .exitOverride()
    .configureOutput({ writeOut: (text) => print(text.trimEnd()) });
}

function printToStdout(text: string): void {
  process.stdout.write(`${text}\n`);
}

/**
 * Runs the command that the arguments name, or prints the help if they contain `--help`.
 * @param args the arguments after the name of the program
 * @throws StartError with one sentence and the usage if the arguments are invalid; errors of the command
 */
export async function runProgram(program: Command, args: readonly string[]): Promise<void> {
  await program.parseAsync(args, { from: 'user' }).catch((error) => {
    if (!(error instanceof CommanderError)) throw error; // else the help was printed
  });
}

/** Runs the command in the arguments of the process. An error is printed, and results in the exit code 1. */
export async function runMain(
  program: Command,
  formatError: (error: unknown) => string = formatFailure,
): Promise<void> {
  await runProgram(program, process.argv.slice(2)).catch((error) => {
    process.stderr.write(`${formatError(error)}\n`);
    process.exitCode = 1;
  });
}

function listCommands({ commands }: Command): Command[] {
  return commands.flatMap((command) => [command, ...listCommands(command)]);
}

function formatUsage(command: Command): string {
  const help = command.createHelp();
  if (!command.parent && command.commands.length > 0)
    return `Usage: ${help.commandUsage(command)}, and --help lists the commands`;
  const lines = [command, ...listCommands(command)].map((part) => help.commandUsage(part));
  return `Usage: ${lines.join('\n       ')}`;
}

function formatArguments({ parent, commands, registeredArguments, options }: Command): string {
  if (!parent && commands.length > 0) return '<command>';
  const operands = registeredArguments.map((operand) => {
    const name = `${operand.name()}${operand.variadic ? '…' : ''}`;
    return operand.required ? `<${name}>` : `[${name}]`;
  });
  return [...operands, ...options.map(({ flags, mandatory }) => (mandatory ? flags : `[${flags}]`))].join(' ');
}
