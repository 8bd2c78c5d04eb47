/** versitygw, an independent S3 server that is built with modules of the Go module proxy. */
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { type StartedProcess, startProgram } from '../processes.ts';
import { buildGoPrograms } from './money/go.ts';

export const VERSITYGW_VERSION = 'v1.8.0';
const MODULE = 'github.com/versity/versitygw';

export interface RootCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** Starts the server. @param directory contains the buckets as directories, and may be shared by several servers */
export async function startVersityGw(
  directory: string,
  bucket: string,
  port: number,
  { accessKeyId, secretAccessKey }: RootCredentials,
): Promise<StartedProcess> {
  const bin = await buildGoPrograms({
    name: 'versitygw',
    modules: { [MODULE]: VERSITYGW_VERSION },
    programs: [`${MODULE}/cmd/versitygw`],
    replacements: {},
  });
  await mkdir(path.join(directory, bucket), { recursive: true });
  const command = [path.join(bin, 'versitygw'), '--port', `127.0.0.1:${port}`, 'posix', directory];
  return startProgram(command, { ROOT_ACCESS_KEY: accessKeyId, ROOT_SECRET_KEY: secretAccessKey }, /./);
}
