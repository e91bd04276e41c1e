/**
 * A vitest reporter that writes each test down as it happens, for vitest.mjs to read: what was found so far is known even
 * when the run is killed. Give it the file as --outputFile.journal. One JSON document a line:
 * `{ begun: name }`, `{ name, status, reason, retries?, attack? }` and, last, `{ ended: true }`.
 */
import { fsyncSync, openSync, writeSync } from 'node:fs';

export default class JournalReporter {
  #fd;

  onInit(vitest) {
    this.#fd = openSync(vitest.config.outputFile.journal, 'w');
  }

  onTestCaseReady(test) {
    this.#write({ begun: nameOf(test) });
  }

  onTestCaseResult(test) {
    const { state, note, errors } = test.result();
    const status = state === 'passed' || state === 'failed' ? state : 'skipped';
    const reason = test.meta().skipReason ?? note ?? (test.options.mode === 'todo' ? 'to do' : '');
    const retries = status === 'passed' ? (test.diagnostic()?.retryCount ?? 0) : 0;
    const { attack } = test.meta(); // test/escape
    this.#write({ name: nameOf(test), status, reason: errors?.[0]?.message ?? reason, ...(retries > 0 && { retries }), ...(attack && { attack }) });
  }

  // A hook outside any test, or the loading of the file: no test needs to have failed for it.
  onTestSuiteResult(suite) {
    for (const { message } of suite.errors()) this.#write({ name: nameOf(suite), status: 'failed', reason: message });
  }

  onTestModuleEnd(file) {
    for (const { message } of file.errors()) this.#write({ name: file.relativeModuleId, status: 'failed', reason: message });
  }

  onTestRunEnd(_files, unhandled) {
    for (const { message } of unhandled) this.#write({ name: 'outside any test', status: 'failed', reason: message });
    this.#write({ ended: true });
  }

  // To the disk at once: in User-Mode Linux what is only in its memory is lost when it is killed.
  #write(entry) {
    writeSync(this.#fd, `${JSON.stringify(entry)}\n`);
    fsyncSync(this.#fd);
  }
}

function nameOf(task) {
  return `${task.module.relativeModuleId} > ${task.fullName}`;
}
