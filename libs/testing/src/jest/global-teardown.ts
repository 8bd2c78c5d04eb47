export { release as default } from './postgres-directory.ts';
