import { runRole } from '#infra';
import { startProjector } from './projector.ts';

await runRole('projector', startProjector);
