export { reserve as default } from './postgres-directory.ts';
