// Which profile answers which question: what somebody knows who is woken at night is what is wrong, not what it is called.

import { resolveType, type ProfileType } from "./profile-type.ts";

export interface ProfileQuestion {
  /** What one sees. */
  symptom: string;
  /** What the profile shows then. */
  answer: string;
  /** Short name of the type. */
  type: string;
  /** How to get one where there is none. */
  command: string;
}

export const PROFILE_QUESTIONS: readonly ProfileQuestion[] = [
  {
    symptom: "CPUs are busy, or cost too much",
    answer: "what runs on them",
    type: "cpu",
    command: "candela up",
  },
  {
    symptom: "It is slow, and CPUs have little to do",
    answer: "what threads wait for, and for how long",
    type: "off_cpu",
    command: "candela record -a -e off-cpu -d 10s --server URL",
  },
  {
    symptom: "It is slow, and nobody knows why",
    answer: "all time of all threads, running and waiting",
    type: "wall",
    command: "candela record -a -e cpu,off-cpu -d 10s --server URL",
  },
  {
    symptom: "More threads do not make it faster",
    answer: "which locks they wait for, and who holds them",
    type: "lock",
    command: "candela record -a -e lock -d 10s --server URL",
  },
  {
    symptom: "Memory grows and is not given back",
    answer: "what is in use, by who allocated it",
    type: "inuse",
    command: "candela record -e alloc --server URL -- COMMAND",
  },
  {
    symptom: "The garbage collector or the allocator is busy",
    answer: "who allocates how much",
    type: "alloc",
    command: "candela record -e alloc --server URL -- COMMAND",
  },
  {
    symptom: "The process is larger than its heap",
    answer: "who asked the kernel for memory",
    type: "growth",
    command: "candela record -a -e growth -d 10s --server URL",
  },
  {
    symptom: "It starts slowly, or touches much memory",
    answer: "where pages are touched for the first time",
    type: "fault",
    command: "candela record -a -e fault -d 10s --server URL",
  },
  {
    symptom: "The disk is busy",
    answer: "who reads and writes, and how long it takes",
    type: "io",
    command: "candela record -a -e io -d 10s --server URL",
  },
  {
    symptom: "Threads are ready to run and do not",
    answer: "who waits for a CPU",
    type: "runq",
    command: "candela record -a -e runq -d 10s --server URL",
  },
  {
    symptom: "Goroutines pile up",
    answer: "where they are",
    type: "goroutine",
    command: "candela up",
  },
];

export interface AnsweredQuestion {
  question: ProfileQuestion;
  /** The type that the server has for it. */
  found: ProfileType | undefined;
}

/** Those that can be answered first, each in its order. */
export function answeredQuestions(known: readonly ProfileType[]): AnsweredQuestion[] {
  const asked = PROFILE_QUESTIONS.map((question) => ({ question, found: typeOf(known, question.type) }));
  return [...asked.filter(({ found }) => found !== undefined), ...asked.filter(({ found }) => found === undefined)];
}

function typeOf(known: readonly ProfileType[], short: string): ProfileType | undefined {
  return known.some((type) => type.short === short) ? resolveType(known, short) : undefined;
}
