import { workflowScheduleContract } from '../contracts/workflow-schedule.ts';
import { MemoryWorkflowSchedule } from './memory-workflow-schedule.ts';

workflowScheduleContract('in memory', async () => new MemoryWorkflowSchedule());
