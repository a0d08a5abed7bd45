/** Processes of the machine, read from /proc. */
import { readdirSync, readFileSync } from 'node:fs';

/** @returns the process's parent, name, state and start; undefined when there is none */
function statOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const end = stat.lastIndexOf(')');
    const [state, parent, ...rest] = stat.slice(end + 2).split(' ');
    return { pid, name: stat.slice(stat.indexOf('(') + 1, end), state, parent: Number(parent), startedAt: rest[17] };
  } catch {
    return undefined;
  }
}

/** Processes below one, whatever their depth. */
export function descendantsOf(pid) {
  const children = new Map();
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? statOf(Number(name)) : undefined;
    if (stat) children.set(stat.parent, [...(children.get(stat.parent) ?? []), stat]);
  }
  const processes = [];
  const walk = (parent) => {
    for (const stat of children.get(parent) ?? []) {
      processes.push(stat);
      walk(stat.pid);
    }
  };
  walk(pid);
  return processes;
}

/** True while this very process lives: an id may be used again, and a zombie is not alive. */
export function isAlive({ pid, startedAt }) {
  const stat = statOf(pid);
  return stat !== undefined && stat.startedAt === startedAt && stat.state !== 'Z';
}

/** Sends a signal to a process that may be gone. */
export function signal(pid, name) {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}
