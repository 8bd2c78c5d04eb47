export { createNodeRuntime, nodeRandomness, nodeTimers } from './node-runtime.ts';
