import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';

interface Workflow {
  permissions: Record<string, string>;
  jobs: Record<string, { steps: { uses?: string; run?: string }[] }>;
}

const folder = '.github/workflows';
const workflows = Object.fromEntries(
  readdirSync(folder).map((file) => [file, parse(readFileSync(`${folder}/${file}`, 'utf8')) as Workflow]),
);
const stepsOf = ({ jobs }: Workflow) => Object.values(jobs).flatMap(({ steps }) => steps);

describe('the workflows', () => {
  it('read the repository and nothing else, by actions of one version each', () => {
    for (const workflow of Object.values(workflows)) {
      expect(workflow.permissions).toEqual({ contents: 'read' });
      const actions = stepsOf(workflow).flatMap(({ uses }) => uses ?? []);
      expect(actions.filter((action) => !/^actions\/[a-z-]+@v\d+\.\d+\.\d+$/.test(action))).toEqual([]);
    }
  });

  it('run what a person runs: the pipeline, and each night the search', () => {
    const lastOf = (file: string) => stepsOf(workflows[file]).at(-1)?.run;
    expect(lastOf('ci.yml')).toContain(' .ci/run');
    expect(lastOf('nightly.yml')).toContain(' npm run lab search');
  });
});
