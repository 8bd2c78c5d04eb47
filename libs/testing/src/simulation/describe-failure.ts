import type { Plan } from './plan.ts';
import { runSimulation } from './run-simulation.ts';
import { shrinkPlan } from './shrink.ts';
import type { SentRequest } from './simulated-world.ts';

const MAX_REPORTS = 50;

/**
 * Describes a failing plan: the rules that it breaks, the shortest plan that still breaks the first of them, and the log
 * of its events.
 */
export async function describeFailure(plan: Plan): Promise<string> {
  const { violations } = await runSimulation(plan);
  const [first] = violations;
  if (!first) return `seed ${plan.seed} breaks no rule`;
  const shrunk = await shrinkPlan(plan, async (candidate) => {
    const result = await runSimulation(candidate);
    return result.violations.some(({ rule }) => rule === first.rule);
  });
  const { world, events, violations: shrunkViolations } = await runSimulation(shrunk);
  return [
    `Seed ${plan.seed} breaks a rule. Its shortest plan:`,
    JSON.stringify(shrunk, undefined, 1),
    ...shrunkViolations.map(({ rule, detail }) => `Broken: ${rule}: ${detail}`),
    ...world.requests.map(formatRequest),
    ...world.reports
      .slice(0, MAX_REPORTS)
      .map(({ atMs, process, problem }) => `${formatMs(atMs)} ${process}: ${problem}`),
    'Events:',
    ...events.map(
      ({ recordedAt, stream, revision, type, data }) =>
        `${recordedAt} ${stream}@${revision} ${type} ${JSON.stringify(data)}`,
    ),
  ].join('\n');
}

function formatRequest({ step, sentAtMs, endedAtMs, outcome, process }: SentRequest): string {
  const result = !outcome ? 'no response' : 'charged' in outcome ? `charged ${outcome.charged}` : String(outcome.error);
  const end = endedAtMs === undefined ? '' : ` until ${formatMs(endedAtMs)}`;
  return `${formatMs(sentAtMs)}${end} ${step.id} at ${process?.name ?? 'no gateway'}: ${result}`;
}

function formatMs(milliseconds: number): string {
  return `${Math.round(milliseconds)} ms`;
}
