/**
 * `npm run prove:media`: real decoders (Debian's ffmpeg) open the output, and real encoders create the input. OpenAI's
 * client for Python generates images in every format, edits images, generates speech and transcribes recordings in all
 * formats. Videos are generated without that client. Every file is decoded to its end and subtitles are parsed.
 * Recordings are charged for their length, give or take a second. No price exceeds its hold, and the ledger verifies
 * with a drift of 0. The client and ffmpeg are installed for the proof.
 */
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ProofCluster } from '../cluster.ts';
import { root } from '../processes.ts';
import { waitForCharges } from './clients/charged.ts';
import { install } from './clients/install.ts';
import { runCommand } from './clients/run.ts';
import { unpackDebianPackage } from './money/debian.ts';

const FFMPEG = '7:5.1.9-0+deb12u1';
const OPENAI = '3.54.0';
const CREDIT_USD = 500;
const WITHIN_MS = 600_000;
const SECONDS = 61;

/** ffmpeg's options of each encoder, by the name of its output file. */
const ENCODED: Readonly<Record<string, readonly string[]>> = {
  'constant.mp3': ['-c:a', 'libmp3lame', '-b:a', '128k'],
  'variable.mp3': ['-c:a', 'libmp3lame', '-q:a', '9', '-write_xing', '0'],
  'aac.m4a': ['-c:a', 'aac', '-b:a', '64k'],
  'aac.mp4': ['-c:a', 'aac', '-b:a', '96k'],
  'pcm.wav': ['-c:a', 'pcm_s16le', '-ar', '16000'],
  'stereo.wav': ['-c:a', 'pcm_s24le', '-ac', '2'],
  'opus.webm': ['-c:a', 'libopus', '-b:a', '24k'],
  'vorbis.webm': ['-c:a', 'libvorbis'],
  'layer2.mpga': ['-c:a', 'mp2', '-f', 'mp2'],
  'layer2.mpeg': ['-c:a', 'mp2', '-f', 'mpeg'],
};

const SUBTITLES: ReadonlySet<string> = new Set(['.srt', '.vtt']);

const print = (line: string) => void process.stdout.write(`${line}\n`);

class Decoder {
  private constructor(private readonly env: Record<string, string>) {}

  static async install(): Promise<Decoder> {
    const { bin, env } = await unpackDebianPackage('ffmpeg', FFMPEG);
    return new Decoder({ ...(process.env as Record<string, string>), ...env, PATH: `${bin}:${process.env.PATH}` });
  }

  private async run(command: readonly string[], cwd: string): Promise<string> {
    const { code, output } = await runCommand(command, { cwd, env: this.env, timeoutMs: WITHIN_MS });
    if (code !== 0) throw new Error(`${command.join(' ')}: ${output.trim().slice(-500)}`);
    return output;
  }

  /** Records a tone of 61 seconds with each encoder. */
  async record(directory: string): Promise<void> {
    for (const [name, options] of Object.entries(ENCODED)) {
      const tone = ['-f', 'lavfi', '-i', `sine=frequency=440:duration=${SECONDS}`];
      await this.run(['ffmpeg', '-v', 'error', ...tone, ...options, name], directory);
    }
  }

  /** Decodes a file to its end. @returns a description of its content @throws Error at the first decoding error */
  async open(directory: string, name: string): Promise<string> {
    const decode = ['ffmpeg', '-v', 'error', '-xerror', '-i', name];
    if (SUBTITLES.has(path.extname(name))) {
      const cues = (await this.run([...decode, '-f', 'webvtt', '-'], directory)).match(/^.* --> .*$/gm);
      if (!cues) throw new Error(`${name} has no cues`);
      return `${cues.length} cues, the last at ${cues.at(-1)}`;
    }
    const output = await this.run([...decode, '-f', 'null', '-'], directory);
    if (output.trim() !== '') throw new Error(`${name}: ${output.trim()}`);
    const probeOptions = [
      '-show_entries',
      'format=format_name,duration:stream=codec_name,width,height',
      '-of',
      'csv=p=0',
    ];
    return (await this.run(['ffprobe', '-v', 'error', ...probeOptions, name], directory)).trim().replaceAll('\n', ' ');
  }
}

async function prove(directory: string): Promise<boolean> {
  const decoder = await Decoder.install();
  const python = path.join(await install({ pypi: { openai: OPENAI } }), 'venv/bin/python');
  const recordings = path.join(directory, 'recordings');
  const out = path.join(directory, 'out');
  for (const folder of [recordings, out]) await mkdir(folder);
  await decoder.record(recordings);
  const cluster = await ProofCluster.startStandalone(path.join(directory, 'data'), { LOG_LEVEL: 'info' });
  try {
    const customer = await cluster.createCustomer(CREDIT_USD);
    const { balance } = await cluster.fetchBalance(customer);
    const [api = ''] = cluster.gateways;
    const env = {
      ...(process.env as Record<string, string>),
      GATEWAY_URL: api,
      API_KEY: customer.apiKey,
      RECORDINGS: recordings,
      OUT: out,
    };
    const script = path.join(root, 'tools/proofs/media/py_media.py');
    const { code, output } = await runCommand([python, script], { cwd: directory, env, timeoutMs: WITHIN_MS });
    print(output.trim());
    let allPassed = code === 0;
    for (const name of (await readdir(out)).toSorted()) {
      const decoded = await decoder.open(out, name).catch((error: Error) => error);
      allPassed &&= typeof decoded === 'string';
      print(`${name}: ${typeof decoded === 'string' ? `ok: ${decoded}` : `FAILED: ${decoded.message}`}`);
    }
    allPassed = (await proveLengths(cluster, customer.apiKey)) && allPassed;
    const paid = await waitForCharges(cluster, customer, balance, { served: 0 });
    print(`charged ${paid.balanceUsd} pico-USD, in the history ${paid.historyUsd}, ${paid.heldUsd} USD held`);
    allPassed &&= paid.balanceUsd === paid.historyUsd && paid.heldUsd === 0;
    return (await proveLedger(cluster)) && allPassed;
  } finally {
    await cluster.stop();
  }
}

/** Checks that there are two transcriptions per encoding, each charged for 61 seconds, give or take one. */
async function proveLengths({ gateways: [api] }: ProofCluster, apiKey: string): Promise<boolean> {
  const headers = { authorization: `Bearer ${apiKey}` };
  const response = await fetch(`${api}/queries/history?query_type=speech_to_text&page_count=100`, { headers });
  const { data } = (await response.json()) as { data: readonly { readonly input_count: number }[] };
  const lengths = [...new Set(data.map(({ input_count }) => input_count))].toSorted((a, b) => a - b);
  const all = data.length >= 2 * Object.keys(ENCODED).length;
  const isCorrect = all && lengths.every((seconds) => Math.abs(seconds - SECONDS) <= 1);
  print(
    `${data.length} transcriptions of recordings of ${SECONDS} s were charged for ${lengths.join(', ')} s: ${isCorrect ? 'ok' : 'FAILED'}`,
  );
  return isCorrect;
}

async function proveLedger(cluster: ProofCluster): Promise<boolean> {
  const replayed = await cluster.runLedger('replay');
  const overrun = /^.*\boverrun\b.*$/m.exec(replayed.output)?.[0];
  print(overrun === undefined ? 'overrun 0' : `FAILED: ${overrun}`);
  const { code, output } = await cluster.runLedger('verify');
  print(
    output
      .trim()
      .split('\n')
      .slice(code === 0 ? -1 : -10)
      .join('\n'),
  );
  return code === 0 && overrun === undefined;
}

const directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-media-'));
try {
  if (!(await prove(directory))) process.exitCode = 1;
} finally {
  await rm(directory, { recursive: true, force: true });
}
