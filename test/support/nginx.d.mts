import type { ChildProcess } from 'node:child_process';

export function startNginx(
  folder: string,
  port: number,
  ports: number[],
  changes?: Record<string, string>,
): ChildProcess;
