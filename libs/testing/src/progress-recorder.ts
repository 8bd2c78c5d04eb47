import type { ProgressTask, StartProgress } from '#foundation';

export interface RecordedTask extends ProgressTask {
  done: number;
  isFinished: boolean;
}

/** Records the progress that work reports. */
export class ProgressRecorder {
  readonly tasks: RecordedTask[] = [];

  readonly start: StartProgress = (task) => {
    const recorded: RecordedTask = { ...task, done: 0, isFinished: false };
    this.tasks.push(recorded);
    const update = (done: number) => void Object.assign(recorded, { done });
    return { update, finish: () => void Object.assign(recorded, { isFinished: true }) };
  };
}
