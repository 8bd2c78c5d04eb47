export { describeFailure } from './describe-failure.ts';
export { createPlan } from './plan.ts';
export { runSimulation } from './run-simulation.ts';
