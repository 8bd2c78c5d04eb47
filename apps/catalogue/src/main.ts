import '#foundation/node-version';
import { runCatalogueCommand } from './command-line.ts';

const { exitCode, stdout, stderr } = await runCatalogueCommand(process.argv.slice(2), process.env);
process.stdout.write(stdout);
process.stderr.write(stderr);
process.exitCode = exitCode;
